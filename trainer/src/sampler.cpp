#include "ranklog/trainer/sampler.hpp"

#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "ranklog/schema/error.hpp"

namespace ranklog {
namespace {

// Neighbouring seeds and epochs give unrelated orders (the finaliser of splitmix64).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

}  // namespace

std::vector<std::size_t> shuffled_indices(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(mix(seed));
  // std::shuffle may differ between standard libraries; the generator itself may not.
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

DistributedSampler::DistributedSampler(std::size_t samples, std::size_t batch_size, int world_size,
                                       std::uint64_t seed)
    : samples_(samples),
      batch_size_(batch_size),
      world_size_(static_cast<std::size_t>(world_size)),
      seed_(seed),
      steps_per_epoch_(static_cast<std::int64_t>(samples / (batch_size * world_size_))) {
  if (steps_per_epoch_ > 0) return;
  throw Error(ErrorCode::kUsage,
              "a batch of " + std::to_string(batch_size) + " on each of " + std::to_string(world_size) +
                  " ranks needs more than the " + std::to_string(samples) + " training samples",
              "choose a smaller --batch_size");
}

std::vector<std::size_t> DistributedSampler::batch(std::int64_t epoch, std::int64_t step_in_epoch, int rank) {
  if (epoch != ordered_epoch_) {
    order_ = shuffled_indices(samples_, mix(seed_) + static_cast<std::uint64_t>(epoch));
    ordered_epoch_ = epoch;
  }
  const std::size_t global = static_cast<std::size_t>(step_in_epoch) * world_size_;
  const auto first =
      order_.begin() + static_cast<std::ptrdiff_t>((global + static_cast<std::size_t>(rank)) * batch_size_);
  return {first, first + static_cast<std::ptrdiff_t>(batch_size_)};
}

}  // namespace ranklog
