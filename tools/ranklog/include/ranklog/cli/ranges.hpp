#pragma once
// Ranks and steps as people type them: --ranks 0-3,7 --steps 100:200.

#include <string>
#include <string_view>
#include <vector>

#include "ranklog/sql/point_reader.hpp"

namespace ranklog::cli {

// Both ends belong to it. Throws Error (kUsage) naming the text.
class RankSet {
 public:
  static RankSet parse(std::string_view text);  // "0-3,7"; empty: every rank
  [[nodiscard]] bool holds(int rank) const;
  [[nodiscard]] bool all() const noexcept { return ranges_.empty(); }

 private:
  struct Range {
    int first, last;
  };
  std::vector<Range> ranges_;
};

// "100:200", "100:", ":200" or "100"; both ends belong to it. Throws Error (kUsage) naming the text.
[[nodiscard]] sql::StepRange parse_steps(std::string_view text);

}  // namespace ranklog::cli
