#include "summary.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ranklog::sync {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

class SummaryTest : public ::testing::Test {
 protected:
  // Rows of one key, one value each.
  std::string summary_of(const std::vector<ValueView>& values, std::vector<std::string> wanted,
                         const std::string& key = "k") {
    const std::vector<KeyPath> keys = {KeyPath::parse(key)};
    std::vector<MetricDefinition> definitions;
    if (!wanted.empty())
      definitions.push_back({.name = key, .step_metric = "", .summary = std::move(wanted), .goal = ""});
    const MetricRules rules(definitions, keys);
    SummaryBuilder summary(rules, keys);
    std::int64_t step = 0;
    for (const ValueView& value : values) {
      HistoryRow row;
      row.step = step;
      row.time_ns = (100 + step) * kSecond;
      row.cells = {{0, value}};
      summary.add(row, step * kSecond);
      ++step;
    }
    return summary.json(overrides_, 7 * kSecond + 1);
  }
  static std::string with(const std::string& value, int steps, const std::string& key = "k") {
    const std::string last = std::to_string(steps - 1);
    return "{\"_runtime\":" + last + ",\"_step\":" + last + ",\"_timestamp\":" + std::to_string(99 + steps) +
           ",\"_wandb\":{\"runtime\":7}" + (value.empty() ? "" : ",\"" + key + "\":" + value) + "}";
  }

  std::vector<SummaryOverride> overrides_;
};

TEST_F(SummaryTest, LastValueIsTheDefault) {
  EXPECT_EQ(summary_of({1.5, 0.5, 0.75}, {}), with("0.75", 3));
  EXPECT_EQ(summary_of({1, "text"}, {}), with("\"text\"", 2));
}

TEST_F(SummaryTest, AggregatesAreMembersOfAnObject) {
  EXPECT_EQ(summary_of({2, 1, 3, 2}, {"min", "max", "mean", "first", "last"}),
            with(R"({"first":2,"last":2,"max":3,"mean":2,"min":1})", 4));
}

TEST_F(SummaryTest, NaNIsKeptOutOfMinimumAndMaximumOnly) {
  EXPECT_EQ(summary_of({1.0, std::nan(""), 3.0}, {"min", "max", "mean"}),
            with(R"({"max":3,"mean":NaN,"min":1})", 3));
  EXPECT_EQ(summary_of({std::nan("")}, {"min"}), with(R"({"min":NaN})", 1));
}

TEST_F(SummaryTest, NoneAndNullAreLeftOut) {
  EXPECT_EQ(summary_of({1}, {"none"}), with("", 1));
  EXPECT_EQ(summary_of({nullptr}, {}), with("", 1));
}

TEST_F(SummaryTest, ExplicitValueWinsOverAggregates) {
  overrides_ = {{"k", "\"best\""}};
  EXPECT_EQ(summary_of({1, 2}, {"min"}), with("\"best\"", 2));
}

TEST_F(SummaryTest, NestedKeysNestAndFlatOnesDoNot) {
  EXPECT_EQ(summary_of({1}, {}, "val.acc"), with(R"({"acc":1})", 1, "val"));
  EXPECT_EQ(summary_of({1}, {}, "val\\.acc"), with("1", 1, "val.acc"));
}

TEST_F(SummaryTest, RunWithoutRowsHasOnlyItsRuntime) {
  EXPECT_EQ(summary_of({}, {}), R"({"_wandb":{"runtime":7}})");
}

}  // namespace
}  // namespace ranklog::sync
