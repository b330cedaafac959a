#pragma once
// An axis: from values to positions, and where to put which labels.

#include <optional>
#include <string>
#include <vector>

namespace ranklog::cli {

struct Tick {
  double value = 0;
  std::string label;
};

enum class Scale : unsigned char { kLinear, kLog };

// Covers [low, high]; an empty range is widened so that its value lies in the middle. On a log axis both are
// positive.
class Axis {
 public:
  Axis(double low, double high, Scale scale);

  [[nodiscard]] double low() const noexcept { return low_; }
  [[nodiscard]] double high() const noexcept { return high_; }
  // 0 at low, 1 at high.
  [[nodiscard]] double fraction(double value) const;
  // Round values inside the range, ascending, about `wanted` of them and at least two; of an empty range, its
  // value.
  [[nodiscard]] std::vector<Tick> ticks(int wanted) const;

 private:
  [[nodiscard]] std::vector<Tick> linear_ticks(int wanted) const;
  [[nodiscard]] std::vector<Tick> log_ticks(int wanted) const;

  double low_, high_;
  Scale scale_;
  std::optional<double> only_;
};

}  // namespace ranklog::cli
