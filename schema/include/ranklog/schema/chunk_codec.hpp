#pragma once
// A row group as bytes and back (FORMAT.md, "Chunks"): columns, encoded by kind, then zstd, with a checksum.

#include <cstdint>
#include <string>
#include <string_view>

#include "ranklog/schema/row_group.hpp"

namespace ranklog {

[[nodiscard]] std::string encode_chunk(const RowGroup& group);

// Throws Error (kDamaged) for bytes that encode_chunk did not make, in time and memory bounded by `max_rows`
// and the size of the input.
[[nodiscard]] RowGroup decode_chunk(std::string_view bytes, std::uint64_t max_rows = 1u << 24);

[[nodiscard]] std::string encode_stats(const RowGroupInfo& info);
// Fills info.series.
void decode_stats(std::string_view bytes, RowGroupInfo& info);

}  // namespace ranklog
