#include "ranklog/cli/axis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "ranklog/cli/format.hpp"

namespace ranklog::cli {
namespace {

// The smallest of 1, 2, 2.5, 5, 10 times a power of ten that is not below `value`.
double round_up_nice(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string print(const char* format, int digits, double value) {
  std::array<char, 64> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), format, digits, value);
  return buffer.data();
}

// Without zeros at the end of a fraction: 1.50e-05 is 1.5e-05.
std::string without_zeros(std::string text) {
  const std::size_t exponent = std::min(text.find('e'), text.size());
  if (text.find('.') >= exponent) return text;
  std::size_t end = exponent;
  while (text[end - 1] == '0') --end;
  if (text[end - 1] == '.') --end;
  return text.erase(end, exponent - end);
}

std::string scientific(double value) {
  return without_zeros(print("%.*e", 3, value));
}

// Labels of round values `step` apart, all with as many digits as tell them apart.
std::string label_of(double value, double step, double largest) {
  if (largest >= 1e9 || largest < 1e-4) return value == 0 ? "0" : scientific(value);
  if (step >= 1000 && std::fmod(step, 100) == 0) {
    const bool millions = largest >= 1e6;
    const double unit = millions ? 1e6 : 1e3;
    if (value == 0) return "0";
    return without_zeros(print("%.*f", millions ? 4 : 1, value / unit)) + (millions ? "M" : "k");
  }
  int decimals = 0;
  for (double scaled = step; decimals < 12 && std::abs(scaled - std::round(scaled)) > 1e-6 * scaled;
       ++decimals) {
    scaled *= 10;
  }
  return print("%.*f", decimals, value);
}

}  // namespace

Axis::Axis(double low, double high, Scale scale) : low_(low), high_(high), scale_(scale) {
  const double size = std::max(std::abs(low), std::abs(high));
  if (high_ / 2 - low_ / 2 > size * 1e-12) return;
  only_ = low;
  if (scale_ == Scale::kLog) {
    low_ /= 2;
    high_ *= 2;
    return;
  }
  const double margin = size > 0 ? size * 0.05 : 1;
  low_ -= margin;
  high_ += margin;
}

double Axis::fraction(double value) const {
  if (scale_ == Scale::kLog) return std::log(value / low_) / std::log(high_ / low_);
  // Halves keep the range of the largest finite values finite.
  return (value / 2 - low_ / 2) / (high_ / 2 - low_ / 2);
}

std::vector<Tick> Axis::ticks(int wanted) const {
  if (only_) return {{*only_, format_double(*only_)}};
  std::vector<Tick> found = scale_ == Scale::kLog ? log_ticks(wanted) : linear_ticks(wanted);
  if (found.size() >= 2) return found;
  return {{low_, format_double(std::strtod(print("%.*g", 4, low_).c_str(), nullptr))},
          {high_, format_double(std::strtod(print("%.*g", 4, high_).c_str(), nullptr))}};
}

std::vector<Tick> Axis::linear_ticks(int wanted) const {
  const double range = high_ / 2 - low_ / 2;
  const double step = round_up_nice(range / std::max(1, wanted) * 2);
  const double largest = std::max(std::abs(low_), std::abs(high_));
  std::vector<Tick> found;
  const double slack = step * 1e-6;
  for (double n = std::ceil((low_ - slack) / step); n * step <= high_ + slack; ++n) {
    const double value = n * step + 0.0;  // not -0
    found.push_back({value, label_of(value, step, largest)});
  }
  return found;
}

std::vector<Tick> Axis::log_ticks(int wanted) const {
  const double first = std::floor(std::log10(low_));
  const double last = std::ceil(std::log10(high_));
  const double decades = std::log10(high_ / low_);
  const double every = std::max(1.0, std::ceil(decades / std::max(1, wanted)));
  std::vector<Tick> found;
  for (double exponent = first; exponent <= last; exponent += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && decades > wanted / 2.0) continue;
      const double value = factor * std::pow(10.0, exponent);
      if (value < low_ * (1 - 1e-9) || value > high_ * (1 + 1e-9)) continue;
      const bool plain = value >= 1e-4 && value < 1e6;
      found.push_back({value, plain ? without_zeros(print("%.*f", 6, value)) : scientific(value)});
    }
  }
  return found;
}

}  // namespace ranklog::cli
