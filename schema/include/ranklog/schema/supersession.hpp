#pragma once
// Which rows of a rank file are replaced: by a later attempt, or because the rank was rewound.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ranklog/schema/records.hpp"
#include "ranklog/schema/row_group.hpp"

namespace ranklog {

class Supersession {
 public:
  Supersession() = default;  // nothing is
  // `from_step`: what later files replace (Experiment::superseded_from). `rewinds`: the file's own, by
  // sequence (RankFile::rewinds).
  Supersession(std::optional<std::int64_t> from_step, std::span<const Event> rewinds);

  [[nodiscard]] bool covers(std::uint64_t sequence, std::int64_t step) const noexcept;
  // Every row of the group, as far as its ranges tell; and at least one, perhaps.
  [[nodiscard]] bool covers_all(const RowGroupInfo& group) const noexcept;
  [[nodiscard]] bool may_cover(const RowGroupInfo& group) const noexcept;

 private:
  // Rows with a smaller sequence number are replaced at steps >= `from_step`.
  struct Cut {
    std::uint64_t sequence;
    std::int64_t from_step;
  };
  std::vector<Cut> cuts_;  // both numbers ascend
};

}  // namespace ranklog
