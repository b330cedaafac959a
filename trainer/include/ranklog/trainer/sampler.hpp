#pragma once
// Which samples a rank sees in which step. A function of its arguments alone, so that a resumed run goes on
// exactly where it stopped.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ranklog {

// 0 .. count-1 in an order that depends on the seed only; the same with every standard library.
[[nodiscard]] std::vector<std::size_t> shuffled_indices(std::size_t count, std::uint64_t seed);

// Every epoch has its own order. Step k of an epoch takes the k-th `batch_size * world_size` samples of that
// order, rank r the r-th `batch_size` of them: so the global batch of a step depends on the product alone,
// not on how many ranks share it. What is left at the end of an epoch is skipped (another part each epoch).
class DistributedSampler {
 public:
  // Throws Error (kUsage) if a global batch has more samples than there are.
  DistributedSampler(std::size_t samples, std::size_t batch_size, int world_size, std::uint64_t seed);

  [[nodiscard]] std::int64_t steps_per_epoch() const noexcept { return steps_per_epoch_; }
  // batch_size indices for this rank.
  [[nodiscard]] std::vector<std::size_t> batch(std::int64_t epoch, std::int64_t step_in_epoch, int rank);

 private:
  std::size_t samples_;
  std::size_t batch_size_;
  std::size_t world_size_;
  std::uint64_t seed_;
  std::int64_t steps_per_epoch_;
  std::int64_t ordered_epoch_ = -1;
  std::vector<std::size_t> order_;  // of ordered_epoch_
};

}  // namespace ranklog
