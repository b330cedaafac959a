#pragma once
// A peer for the size benchmark: floats by the XOR scheme of "Gorilla: A Fast, Scalable, In-Memory Time
// Series Database" (Pelkonen et al., VLDB 2015, section 4.1.2); only its length is of interest.

#include <bit>
#include <cstdint>

namespace ranklog::bench {

class GorillaSeries {
 public:
  void add(double value) {
    const auto word = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t difference = word ^ last_;
    last_ = word;
    if (first_) {
      bits_ += 64;
      first_ = false;
      return;
    }
    bits_ += 1;
    if (difference == 0) return;
    bits_ += 1;
    const int leading = std::min(std::countl_zero(difference), 31);
    const int trailing = std::countr_zero(difference);
    if (leading >= leading_ && trailing >= trailing_) {
      bits_ += static_cast<std::uint64_t>(64 - leading_ - trailing_);
      return;
    }
    leading_ = leading;
    trailing_ = trailing;
    bits_ += static_cast<std::uint64_t>(5 + 6 + 64 - leading - trailing);
  }
  [[nodiscard]] double bytes() const noexcept { return static_cast<double>(bits_) / 8; }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t bits_ = 0;
  int leading_ = 65, trailing_ = 65;  // no window yet
  bool first_ = true;
};

// Times by differences of differences in the buckets of its section 4.1.1, here in microseconds.
class GorillaTimes {
 public:
  void add(std::int64_t time_us) {
    const std::int64_t delta = time_us - last_;
    const std::int64_t difference = delta - last_delta_;
    last_ = time_us;
    last_delta_ = delta;
    const std::uint64_t magnitude = static_cast<std::uint64_t>(difference < 0 ? -difference : difference);
    if (magnitude == 0)
      bits_ += 1;
    else if (magnitude < 64)
      bits_ += 9;
    else if (magnitude < 256)
      bits_ += 12;
    else if (magnitude < 2048)
      bits_ += 16;
    else if (magnitude < (std::uint64_t{1} << 31))
      bits_ += 36;
    else
      bits_ += 68;
  }
  [[nodiscard]] double bytes() const noexcept { return static_cast<double>(bits_) / 8; }

 private:
  std::int64_t last_ = 0, last_delta_ = 0;
  std::uint64_t bits_ = 0;
};

}  // namespace ranklog::bench
