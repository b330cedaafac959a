#pragma once
// Copies of rank files that are whole by themselves: of one that is being written, or of what can still be
// read of one that is damaged.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "ranklog/schema/rank_file.hpp"

namespace ranklog {

struct Salvage {
  std::uint64_t rows = 0;          // of the history, in the copy
  std::uint64_t rows_missing = 0;  // that the source should have and could not be read
  std::vector<Damage> damage;      // of the source
  // What the source has and the copy has not, as this version does not know it (FORMAT.md, "What may be
  // added"): "table x", "stream 3" …
  std::vector<std::string> left_out;
};

// Writes all that can be read of `source`, its tail too, as one new database file. It keeps who logged, when,
// every sequence number, and how the file ended; a source that has not ended makes a copy that has not. Its
// rows are those of one moment. The source is not touched, and may be written meanwhile.
//
// Throws Error: as RankFile::open(); kBusy if `target` exists; kIo. The target appears whole or not at all.
[[nodiscard]] Salvage copy_rank_file(const std::filesystem::path& source,
                                     const std::filesystem::path& target);

}  // namespace ranklog
