#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ranklog/cli/plot_points.hpp"

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

}  // namespace
}  // namespace ranklog::cli
