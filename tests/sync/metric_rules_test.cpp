#include "metric_rules.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ranklog::sync {
namespace {

MetricDefinition define(const std::string& name, const std::string& step = "", bool sync = false,
                        std::vector<std::string> summary = {}) {
  MetricDefinition definition;
  definition.name = name;
  definition.step_metric = step;
  definition.step_sync = sync;
  definition.summary = std::move(summary);
  return definition;
}

std::vector<KeyPath> keys_of(const std::vector<std::string>& names) {
  std::vector<KeyPath> keys;
  for (const std::string& name : names) keys.push_back(KeyPath::parse(name));
  return keys;
}

TEST(MetricRulesTest, ExactNameOverLongestGlob) {
  const auto keys = keys_of({"train/loss", "train/acc/top1", "train/lr", "val", "_internal"});
  const MetricRules rules({define("*"), define("train/*"), define("train/acc/*"), define("train/lr")}, keys);
  EXPECT_EQ(rules.of(0)->name, "train/*");
  EXPECT_EQ(rules.of(1)->name, "train/acc/*");
  EXPECT_EQ(rules.of(2)->name, "train/lr");
  EXPECT_EQ(rules.of(3)->name, "*");
  EXPECT_EQ(rules.of(4), nullptr);
}

TEST(MetricRulesTest, LaterDefinitionOfANameHolds) {
  const auto keys = keys_of({"a"});
  const MetricRules rules({define("a", "", false, {"min"}), define("a", "", false, {"max"})}, keys);
  EXPECT_EQ(rules.of(0)->summary, std::vector<std::string>{"max"});
}

TEST(MetricRulesTest, OnlySyncedStepMetricsAreFilledIn) {
  const auto keys = keys_of({"epoch", "a", "b"});
  const MetricRules rules({define("a", "epoch", true), define("b", "epoch", false)}, keys);
  EXPECT_EQ(rules.filled_step_key(0), std::nullopt);
  EXPECT_EQ(rules.filled_step_key(1), 0U);
  EXPECT_EQ(rules.filled_step_key(2), std::nullopt);
}

TEST(MetricRulesTest, WandbListHasFieldNumbersAndOneBasedIndices) {
  const auto keys = keys_of({"train/loss", "global_step", "val/acc"});
  MetricDefinition accuracy = define("val/acc", "global_step", true, {"max", "last"});
  accuracy.hidden = true;
  accuracy.goal = "maximize";
  const MetricRules rules({define("train/*", "global_step", true), accuracy}, keys);
  const auto list = nlohmann::json::parse(rules.wandb_list());
  // Sorted by name; globs spelled out; the step metric is an element itself.
  EXPECT_EQ(list, nlohmann::json::parse(R"([
    {"1":"global_step"},
    {"1":"train/loss","5":1,"6":[1],"7":[]},
    {"1":"val/acc","5":1,"6":[1,2,3],"7":[2,5],"8":2}])"));
}

TEST(MetricRulesTest, NoDefinitionsMakeAnEmptyList) {
  EXPECT_EQ(MetricRules({}, keys_of({"a"})).wandb_list(), "[]");
}

}  // namespace
}  // namespace ranklog::sync
