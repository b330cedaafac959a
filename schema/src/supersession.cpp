#include "ranklog/schema/supersession.hpp"

#include <algorithm>
#include <limits>

namespace ranklog {

// A cut that a later one makes pointless is left out: what counts for a row is the smallest step of all cuts
// behind it.
Supersession::Supersession(std::optional<std::int64_t> from_step, std::span<const Event> rewinds) {
  const auto add = [&](Cut cut) {
    while (!cuts_.empty() && cuts_.back().from_step >= cut.from_step) cuts_.pop_back();
    cuts_.push_back(cut);
  };
  for (const Event& event : rewinds) {
    if (event.step) add({event.sequence, *event.step});
  }
  if (from_step) add({std::numeric_limits<std::uint64_t>::max(), *from_step});
}

bool Supersession::covers(std::uint64_t sequence, std::int64_t step) const noexcept {
  if (cuts_.empty()) return false;
  const auto cut = std::ranges::upper_bound(cuts_, sequence, {}, &Cut::sequence);
  return cut != cuts_.end() && step >= cut->from_step;
}

bool Supersession::covers_all(const RowGroupInfo& group) const noexcept {
  return covers(group.last_sequence, group.min_step);
}

bool Supersession::may_cover(const RowGroupInfo& group) const noexcept {
  return covers(group.first_sequence, group.max_step);
}

}  // namespace ranklog
