#include "ranklog/schema/row_group.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace ranklog {
namespace {

TEST(RowGroup, DescriptionHoldsRangesAndStatistics) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  RowGroup group;
  group.sequence = {5, 6, 8};
  group.step = {10, -3, 4};
  group.time_ns = {200, 100, 300};
  Column loss(2);
  for (const double value : {0.5, kNan, -1.5}) loss.push_back(value);
  Column mixed(7);
  mixed.push_back("text");
  mixed.push_back(3);
  mixed.push_back(true);
  group.columns = {loss, mixed};

  const RowGroupInfo info = describe(group);
  EXPECT_EQ(info.rows, 3u);
  EXPECT_EQ(info.first_sequence, 5u);
  EXPECT_EQ(info.last_sequence, 8u);
  EXPECT_EQ(info.min_step, -3);
  EXPECT_EQ(info.max_step, 10);
  EXPECT_EQ(info.min_time_ns, 100);
  EXPECT_EQ(info.max_time_ns, 300);
  ASSERT_EQ(info.series.size(), 2u);
  const SeriesStats& first = info.series[0];
  EXPECT_EQ(first.key, 2u);
  EXPECT_EQ(first.count, 3u);
  EXPECT_EQ(first.numbers, 2u);
  EXPECT_EQ(first.nan_count, 1u);
  EXPECT_EQ(first.min, -1.5);
  EXPECT_EQ(first.max, 0.5);
  EXPECT_EQ(first.last_kind, ValueKind::kFloat64);
  EXPECT_EQ(first.last, -1.5);
  const SeriesStats& second = info.series[1];
  EXPECT_EQ(second.numbers, 1u);
  EXPECT_EQ(second.min, 3);
  EXPECT_EQ(second.last_kind, ValueKind::kBool);
  EXPECT_EQ(second.last, 1);
}

TEST(RowGroup, EmptyGroupHasEmptyDescription) {
  const RowGroupInfo info = describe(RowGroup{});
  EXPECT_EQ(info.rows, 0u);
  EXPECT_TRUE(info.series.empty());
}

}  // namespace
}  // namespace ranklog
