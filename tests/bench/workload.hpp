#pragma once
// The reference workload of the benchmarks: ten series of a training run, from a seeded generator, and how
// many bits their noise holds, below which nothing that gives back every bit can go.

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace ranklog::bench {

enum class Width : std::uint8_t {
  kFloat32,  // noisy values as a framework computes them
  kFloat64,  // the same noise with all bits of a double
};

struct WorkloadRow {
  std::int64_t step = 0;
  std::int64_t time_ns = 0;
  std::array<double, 10> values{};
};

inline constexpr std::array<const char*, 10> kSeriesNames{
    "train/loss", "train/grad_norm", "perf/tokens_per_second", "train/lr",          "perf/mfu",
    "val/acc",    "gpu/memory_gib",  "train/grad_scale",       "perf/step_seconds", "train/tokens"};

class Workload {
 public:
  Workload(std::int64_t steps, Width width) : steps_(steps), width_(width) {}

  WorkloadRow next() {
    const auto step = static_cast<double>(row_);
    const double base = 2 + 8 * std::exp(-step / 5000);
    WorkloadRow row;
    row.step = row_;
    row.time_ns = kStartNs + 1000 * std::llround((step * 0.3 + gaussian(kJitterSeconds)) * 1e6);
    bits_ += entropy(kJitterSeconds, 1e-6);
    row.values = {noisy(base, 0.05),
                  noisy(1, 0.2),
                  noisy(50'000, 500),
                  3e-4 * 0.5 * (1 + std::cos(std::numbers::pi * step / static_cast<double>(steps_))),
                  rounded(0.45, 0.01, 1e4),
                  rounded(0.9 - 0.5 * std::exp(-step / 4000), 0.01, 1e4),
                  static_cast<double>(static_cast<float>(71.3)) + rare(),
                  65536,
                  noisy(0.3, 0.01),
                  static_cast<double>(row_) * 524'288};
    ++row_;
    return row;
  }

  // Of all rows so far, times included, sequence numbers and steps not: these can be predicted.
  [[nodiscard]] double entropy_bits() const noexcept { return bits_; }

 private:
  static constexpr std::int64_t kStartNs = 1'700'000'000'000'000'000;
  static constexpr double kJitterSeconds = 0.01;

  // Of a Gaussian of this deviation in steps of `quantum`.
  static double entropy(double deviation, double quantum) {
    return std::log2(deviation / quantum * std::sqrt(2 * std::numbers::pi * std::numbers::e));
  }
  double gaussian(double deviation) { return deviation * normal_(random_); }

  double noisy(double mean, double deviation) {
    const double value = mean + gaussian(deviation);
    const int mantissa = width_ == Width::kFloat32 ? 23 : 52;
    bits_ += entropy(deviation, std::ldexp(1, std::ilogb(value) - mantissa));
    return width_ == Width::kFloat32 ? as_float32(value) : value;
  }
  // Through memory: GCC 12.2 at -O2 vectorizes two neighbouring calls and forgets the rounding.
  static double as_float32(double value) {
    volatile float narrow = static_cast<float>(value);
    return static_cast<double>(narrow);
  }
  double rounded(double mean, double deviation, double scale) {
    bits_ += entropy(deviation, 1 / scale);
    return std::round((mean + gaussian(deviation)) * scale) / scale;
  }
  // 1 in a hundred rows.
  double rare() {
    constexpr double kShare = 0.01;
    bits_ -= kShare * std::log2(kShare) + (1 - kShare) * std::log2(1 - kShare);
    return std::uniform_real_distribution<double>()(random_) < kShare ? 1 : 0;
  }

  std::int64_t steps_;
  Width width_;
  std::int64_t row_ = 0;
  double bits_ = 0;
  std::mt19937_64 random_{20'260'101};
  std::normal_distribution<double> normal_;
};

}  // namespace ranklog::bench
