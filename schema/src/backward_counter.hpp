#pragma once
// Counts log() calls that went back in steps, while rows go by in the order of their steps.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

namespace ranklog {

// A row went back if a row of a greater step has a smaller sequence number. In step order that is known only
// when that other row comes by, so the sequence numbers that can still turn out so are kept, ascending.
class BackwardCounter {
 public:
  // The sequence numbers of all rows of one step, ascending; steps ascend from call to call.
  void add_step(std::span<const std::uint64_t> sequences) {
    for (; !kept_.empty() && kept_.back() > sequences.front(); kept_.pop_back()) ++count_;
    kept_.insert(kept_.end(), sequences.begin(), sequences.end());
  }
  // No row with a sequence number below `sequence` is still to come.
  void forget_below(std::uint64_t sequence) {
    while (!kept_.empty() && kept_.front() < sequence) kept_.pop_front();
    grown_at_ = 2 * kept_.size() + kLeast;
  }
  // Time to call forget_below().
  [[nodiscard]] bool has_grown() const noexcept { return kept_.size() >= grown_at_; }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  static constexpr std::size_t kLeast = 4096;

  std::deque<std::uint64_t> kept_;
  std::size_t grown_at_ = kLeast;
  std::uint64_t count_ = 0;
};

}  // namespace ranklog
