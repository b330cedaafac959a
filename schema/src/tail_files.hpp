#pragma once
// The tail segments beside a rank file, opened and then read.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "file.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "ranklog/schema/tail.hpp"

namespace ranklog {

struct TailSegment {
  std::filesystem::path path;
  unsigned index = 0;
  FileDescriptor file;  // not open: no regular file
};

// The index in the name of a segment of `rank_file`; empty for other names.
[[nodiscard]] std::optional<unsigned> parse_tail_segment_name(std::string_view name,
                                                              const std::filesystem::path& rank_file);

// The names of the files in a folder. One listing serves all rank files in it: listing anew for each would
// cost the square of their number.
[[nodiscard]] std::vector<std::string> list_folder(const std::filesystem::path& folder);

// The segments among `names`, by index, and those that a listing during their creation missed. One that has
// vanished meanwhile has been sealed.
[[nodiscard]] std::vector<TailSegment> open_tail_segments(const std::filesystem::path& rank_file,
                                                          const std::vector<std::string>& names);

// What the tail adds to the tables.
struct Tail {
  std::vector<RowGroup> groups;
  std::vector<TailKey> keys;  // in order of appearance; one may be named again in a later segment
  std::vector<Operation> operations;
  std::uint64_t rows = 0;  // of the history, as last_step is
  std::uint64_t bytes = 0;
  std::uint64_t passed_over = 0;  // records of types that this version does not know
  std::optional<std::int64_t> last_step;
  std::optional<std::int64_t> rewind_step;  // the smallest
  std::optional<std::int64_t> last_time_ns;
  std::vector<Damage> damage;
};

// Rows and operations with a sequence above `watermark`, each once. Segments of another launch or rank are
// named in `damage` and left out, and so are things that only have a segment's name.
[[nodiscard]] Tail read_tail(const std::vector<TailSegment>& segments, const Identity& identity,
                             std::uint64_t watermark);

}  // namespace ranklog
