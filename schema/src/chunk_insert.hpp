#pragma once
// A chunk on its way into the table `chunk`.

#include <cstdint>

#include "ranklog/schema/chunk_codec.hpp"
#include "sqlite.hpp"

namespace ranklog {

inline constexpr const char* kInsertChunk =
    "INSERT INTO chunk(id, stream, rows, first_sequence, last_sequence, min_step, max_step, min_time_ns, "
    "max_time_ns, stats, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

// `statement` was made from kInsertChunk.
inline void insert(Statement& statement, std::int64_t id, const EncodedChunk& chunk) {
  const RowGroupInfo& info = chunk.info;
  statement.bind_blob(10, chunk.stats);
  statement.bind_blob(11, chunk.data);
  statement.run(id, static_cast<std::int64_t>(index_of(info.stream)), static_cast<std::int64_t>(info.rows),
                static_cast<std::int64_t>(info.first_sequence), static_cast<std::int64_t>(info.last_sequence),
                info.min_step, info.max_step, info.min_time_ns, info.max_time_ns);
}

}  // namespace ranklog
