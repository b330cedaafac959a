#pragma once
// Small chunks of the same stream and keys, made one.

#include <chrono>
#include <cstdint>

#include "ranklog/schema/rank_database.hpp"
#include "sqlite.hpp"

namespace ranklog {

// Merges neighbouring chunks of one stream and set of keys as long as they stay below a full chunk's rows;
// each merger is a transaction of its own, and none begins after `deadline`. Chunks that cannot be read are
// left as they are. Throws Error (kIo, kBusy): what was merged by then stays.
Compaction merge_small_chunks(Connection& connection, std::chrono::steady_clock::time_point deadline);

// Gives the space of removed chunks back to the file system, and has the smallest pages in a small file, most
// of whose tables hold nothing: if it is worth rewriting the file and the file is not larger than
// `most_bytes`. Outside WAL mode. Throws Error: the file is then as it was.
void reclaim_space(Connection& connection, std::uint64_t most_bytes);

}  // namespace ranklog
