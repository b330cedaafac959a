#pragma once
// From logged values to the points of a line: where it breaks, what is smoothed, what is left out.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ranklog/cli/chart.hpp"

namespace ranklog::cli {

// What was found and is not on the chart.
struct NotDrawn {
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t not_positive = 0;  // on a log axis
  std::uint64_t not_number = 0;    // texts, JSON, null
  std::uint64_t gaps = 0;          // stretches without points, not bridged by a line
};

// A value as it was logged.
struct PlotSample {
  double step = 0;
  double value = 0;
  bool number = true;  // false for texts, JSON and null: the line breaks there
};

// Where the line breaks: at values that cannot be drawn, and where the way to the next step is over ten times
// as long as the ways before and after it. Smoothing is an exponential moving average, corrected for its
// start.
[[nodiscard]] std::vector<ChartPoint> chart_points(const std::vector<PlotSample>& samples, Scale y_scale,
                                                   double smooth, NotDrawn& not_drawn);

// More stretches than a chart has dots from left to right.
inline constexpr std::size_t kOutlineStretches = 4096;
// Breaks within a stretch, which is narrower than a dot, of which more are not kept.
inline constexpr std::size_t kOutlinePieces = 4;

// The same picture from at most kOutlineStretches * kOutlinePieces * 4 points: in each stretch of x, the
// first, lowest, highest and last point of each unbroken piece of the line. The ranges of x and y stay as
// they were.
[[nodiscard]] std::vector<ChartPoint> outline(std::vector<ChartPoint> points);

}  // namespace ranklog::cli
