#pragma once
// A rank file comes into being whole: a process that dies meanwhile leaves nothing under the file's own name.

#include <cstdint>
#include <filesystem>

#include "ranklog/schema/durability.hpp"
#include "ranklog/schema/identity.hpp"

namespace ranklog {

// Makes the file with its tables and no rows, durable, exclusively. What comes of `wanted` is returned and
// stands in the file: without locks, and so without WAL, where locks are refused or hang (for 10 s, by then
// in a thread of its own). Throws Error: kBusy if `path` exists, kIo.
[[nodiscard]] Durability make_rank_file(const std::filesystem::path& path, const Identity& identity,
                                        std::int64_t start_time_ns, const Durability& wanted);

}  // namespace ranklog
