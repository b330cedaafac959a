#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "ranklog/cli/plot_points.hpp"
#include "ranklog/cli/text.hpp"

namespace ranklog::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<bool> joined(const std::vector<ChartPoint>& points) {
  std::vector<bool> flags;
  for (const ChartPoint& point : points) flags.push_back(point.joined);
  return flags;
}

TEST(PlotPoints, LinesBreakAtWhatCannotBeDrawn) {
  NotDrawn missing;
  const std::vector<PlotSample> samples{{0, 1}, {1, kNan},     {2, 3}, {3, kInfinity},
                                        {4, 5}, {5, 0, false}, {6, 7}, {7, 8}};
  const auto points = chart_points(samples, Scale::kLinear, 0, missing);
  EXPECT_EQ(joined(points), (std::vector<bool>{true, false, false, false, true}));
  EXPECT_EQ(missing.nan, 1u);
  EXPECT_EQ(missing.infinite, 1u);
  EXPECT_EQ(missing.not_number, 1u);
  EXPECT_EQ(missing.gaps, 0u);
}

TEST(PlotPoints, AHoleInTheStepsIsAGap) {
  NotDrawn missing;
  std::vector<PlotSample> samples;
  for (int i = 0; i < 10; ++i) samples.push_back({static_cast<double>(i), 1});
  for (int i = 50; i < 60; ++i) samples.push_back({static_cast<double>(i), 1});
  const auto points = chart_points(samples, Scale::kLinear, 0, missing);
  EXPECT_EQ(missing.gaps, 1u);
  EXPECT_FALSE(points[10].joined);
  EXPECT_TRUE(points[11].joined);
}

TEST(PlotPoints, SparseAndWideningStepsAreNoGaps) {
  NotDrawn missing;
  std::vector<PlotSample> epochs;
  for (int i = 0; i < 5; ++i) epochs.push_back({i * 1000.0, 1});
  (void)chart_points(epochs, Scale::kLinear, 0, missing);
  std::vector<PlotSample> doubling;
  for (int i = 0; i < 20; ++i) doubling.push_back({std::pow(2.0, i), 1});
  (void)chart_points(doubling, Scale::kLinear, 0, missing);
  (void)chart_points({{0, 1}, {100000, 1}}, Scale::kLinear, 0, missing);
  EXPECT_EQ(missing.gaps, 0u);
}

TEST(PlotPoints, ALogAxisLeavesOutWhatIsNotPositive) {
  NotDrawn missing;
  const auto points = chart_points({{0, 1}, {1, 0}, {2, -1}, {3, 2}}, Scale::kLog, 0, missing);
  EXPECT_EQ(points.size(), 2u);
  EXPECT_EQ(missing.not_positive, 2u);
}

TEST(PlotPoints, SmoothingStartsAtTheFirstValueAndSkipsNan) {
  NotDrawn missing;
  const auto points = chart_points({{0, 4}, {1, 4}, {2, kNan}, {3, 8}}, Scale::kLinear, 0.5, missing);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_DOUBLE_EQ(points[0].y, 4);
  EXPECT_DOUBLE_EQ(points[1].y, 4);
  // (0.25 * 0.5 * 4 + 0.5 * 0.5 * 4 + 0.5 * 8) / (1 - 0.5^3)
  EXPECT_DOUBLE_EQ(points[2].y, (0.5 + 1 + 4) / 0.875);
}

std::vector<ChartPoint> noisy_line(std::size_t points, std::size_t break_every) {
  std::vector<ChartPoint> line;
  for (std::size_t i = 0; i < points; ++i) {
    const double x = static_cast<double>(i);
    line.push_back({x, std::sin(x / 70'000) + 0.3 * std::sin(x * 1.7), i % break_every != 0});
  }
  line[points / 2].y = 7;  // one peak among hundreds of thousands
  line[points / 3].y = -7;
  return line;
}

// The chart's cells, line by line, each filled up to the chart's width.
std::vector<char32_t> cells_of(const std::vector<ChartPoint>& points, int width) {
  ChartOptions options;
  options.width = width;
  options.height = 40;
  const std::string chart = render_chart({{"line", points}}, options);
  std::vector<char32_t> cells;
  std::size_t lines = 0;
  for (std::string_view rest = chart; !rest.empty();) {
    const CodePoint next = decode_utf8(rest);
    rest.remove_prefix(next.bytes);
    if (next.value == '\n') {
      cells.resize(++lines * static_cast<std::size_t>(width), ' ');
    } else {
      cells.push_back(next.value);
    }
  }
  return cells;
}

// Per mille of the cells.
std::size_t difference(const std::vector<ChartPoint>& a, const std::vector<ChartPoint>& b, int width) {
  const auto cells = cells_of(a, width);
  const auto others = cells_of(b, width);
  EXPECT_EQ(cells.size(), others.size());
  std::size_t differing = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) differing += cells[i] != others[i] ? 1 : 0;
  return differing * 1000 / cells.size();
}

TEST(PlotPoints, AnOutlineOfALongLineIsTheSamePicture) {
  for (const std::size_t break_every : {std::size_t{1'000'000'000}, std::size_t{50'001}}) {
    const auto line = noisy_line(500'000, break_every);
    const auto kept = outline(line);
    EXPECT_LT(kept.size(), 4 * kOutlineStretches + 100);
    const auto by_y = [](const ChartPoint& a, const ChartPoint& b) { return a.y < b.y; };
    const auto [low, high] = std::minmax_element(kept.begin(), kept.end(), by_y);
    EXPECT_EQ((std::pair{low->y, high->y}), (std::pair{-7.0, 7.0}));
    EXPECT_EQ(kept.front().x, line.front().x);
    EXPECT_EQ(kept.back().x, line.back().x);
    const auto breaks = [](const std::vector<ChartPoint>& points) {
      return std::count_if(points.begin(), points.end(), [](const ChartPoint& one) { return !one.joined; });
    };
    EXPECT_EQ(breaks(kept), breaks(line));
    // A point may have moved to the other side of where two dots meet.
    EXPECT_LE(difference(kept, line, 120), 2U);
    EXPECT_LE(difference(kept, line, 1000), 10U);
  }
}

TEST(PlotPoints, AnOutlineIsBoundedHoweverOftenTheLineBreaks) {
  const auto kept = outline(noisy_line(500'000, 2));
  EXPECT_LE(kept.size(), 4 * kOutlinePieces * (kOutlineStretches + 1));
}

TEST(PlotPoints, AShortLineIsItsOwnOutline) {
  const auto line = noisy_line(kOutlineStretches, 3);
  const auto kept = outline(line);
  ASSERT_EQ(kept.size(), line.size());
  EXPECT_EQ(joined(kept), joined(line));
}

}  // namespace
}  // namespace ranklog::cli
