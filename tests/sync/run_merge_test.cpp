#include "run_merge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;
using ranklog::test::TempDir;
using test::Job;
using test::kStartTimeNs;
using test::RankFileBuilder;

constexpr std::int64_t kHour = 3'600'000'000'000;

class RunMergeTest : public ::testing::Test {
 protected:
  RunMergeTest() { job_.nodes = job_.ranks_per_node = 1; }

  struct Merged {
    std::vector<std::string> lines;
    json summary;
    HistoryCounts counts;
  };
  static Merged merge(const Experiment& experiment, bool running = false) {
    const RunFacts facts = read_facts(experiment, 0);
    RunMerge merging(experiment, 0, facts, running);
    Merged out;
    std::string line;
    while (merging.next(line)) out.lines.push_back(line);
    out.summary = json::parse(merging.summary());
    out.counts = merging.counts();
    return out;
  }
  Merged merge(bool running = false) const { return merge(test::scan_one(logs_.path()), running); }
  static std::vector<std::int64_t> steps_of(const Merged& merged) {
    std::vector<std::int64_t> steps;
    for (const std::string& line : merged.lines) steps.push_back(json::parse(line)["_step"]);
    return steps;
  }
  RankFileBuilder attempt(int number, std::optional<std::int64_t> resume_step, std::int64_t start_ns) {
    Job job = job_;
    job.attempt = number;
    job.start_time_ns = start_ns;
    job.adjust = [=](Identity& identity) { identity.resume_step = resume_step; };
    return job.open(logs_.path(), 0);
  }

  TempDir logs_;
  Job job_;
};

TEST_F(RunMergeTest, OneLineAStepWithTheLaterValue) {
  RankFileBuilder file = job_.open(logs_.path(), 0);
  file.row(0, {{"loss", 1.0}}).row(1, {{"loss", 0.5}}).row(1, {{"acc", 0.9}}).row(0, {{"loss", 0.75}});
  file.finish();
  const Merged merged = merge();
  ASSERT_EQ(merged.lines.size(), 2U);
  EXPECT_EQ(json::parse(merged.lines[0])["loss"], 0.75);
  EXPECT_EQ(json::parse(merged.lines[1])["loss"], 0.5);
  EXPECT_EQ(json::parse(merged.lines[1])["acc"], 0.9);
  EXPECT_EQ(merged.counts.backward_steps, 1U);
}

TEST_F(RunMergeTest, LaterAttemptReplacesFromItsResumeStep) {
  {
    RankFileBuilder first = attempt(0, {}, kStartTimeNs);
    for (int step = 0; step < 10; ++step) first.row(step, {{"from", 0}});
    first.seal();
  }
  RankFileBuilder second = attempt(1, 6, kStartTimeNs + kHour);
  for (int step = 6; step < 12; ++step) second.row(step, {{"from", 1}});
  second.finish();
  const Merged merged = merge();
  ASSERT_EQ(merged.lines.size(), 12U);
  for (int step = 0; step < 12; ++step) {
    const json row = json::parse(merged.lines[static_cast<std::size_t>(step)]);
    EXPECT_EQ(row["_step"], step);
    EXPECT_EQ(row["from"], step < 6 ? 0 : 1);
  }
  EXPECT_EQ(merged.counts.superseded_rows, 4U);
}

// One job cut into pieces by its time limit, all under one id.
TEST_F(RunMergeTest, FourPiecesOfOneJobMakeOneContinuousHistory) {
  const int kFirst[] = {0, 8, 20, 32};
  const int kLast[] = {7, 19, 31, 36};
  for (int piece = 0; piece < 4; ++piece) {
    RankFileBuilder file = attempt(piece, piece == 0 ? std::optional<std::int64_t>() : kFirst[piece],
                                   kStartTimeNs + piece * kHour);
    for (int step = kFirst[piece]; step <= kLast[piece]; ++step) file.row(step, {{"loss", step * 1.0}});
    file.finish();
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(job_.folder(logs_.path()))) {
    if (entry.path().extension() == ".db") files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 4U);
  std::ranges::sort(files);
  std::vector<std::string> expected;
  do {
    const Merged merged = merge(scan(files).experiments.at(0));
    ASSERT_EQ(merged.lines.size(), 37U);
    if (expected.empty()) expected = merged.lines;
    ASSERT_EQ(merged.lines, expected);
  } while (std::ranges::next_permutation(files).found);
  for (int step = 0; step < 37; ++step) {
    EXPECT_EQ(json::parse(expected[static_cast<std::size_t>(step)])["_step"], step);
  }
}

TEST_F(RunMergeTest, RuntimeIsActiveTimeWithoutTheGapBetweenAttempts) {
  // Rows come 1 ms a sequence number after the start.
  attempt(0, {}, kStartTimeNs).row(0, {{"a", 1}}).row(1, {{"a", 1}}).finish();
  attempt(1, 2, kStartTimeNs + 6 * kHour).row(2, {{"a", 1}}).row(3, {{"a", 1}}).finish();
  const Merged merged = merge();
  ASSERT_EQ(merged.lines.size(), 4U);
  double before = -1;
  for (const std::string& line : merged.lines) {
    const double runtime = json::parse(line)["_runtime"];
    EXPECT_GE(runtime, before);
    EXPECT_LT(runtime, 1.0);
    before = runtime;
  }
  EXPECT_NEAR(json::parse(merged.lines[2])["_timestamp"].get<double>(), 1'700'000'000 + 6 * 3600, 1);
  EXPECT_EQ(merged.summary["_wandb"]["runtime"], 0);
}

TEST_F(RunMergeTest, NewestStepIsHeldBackWhileTheRankStillWrites) {
  RankFileBuilder file = job_.open(logs_.path(), 0);
  file.row(0, {{"loss", 1.0}}).row(1, {{"loss", 0.5}}).row(2, {{"loss", 0.25}});
  EXPECT_EQ(steps_of(merge(true)), std::vector<std::int64_t>({0, 1}));
  EXPECT_EQ(steps_of(merge(false)), std::vector<std::int64_t>({0, 1, 2}));
}

TEST_F(RunMergeTest, StepsThatARestartWillReplaceAreHeldBack) {
  {
    RankFileBuilder first = attempt(0, {}, kStartTimeNs);
    for (int step = 0; step < 5; ++step) first.row(step, {{"a", step}});
    first.seal();
  }
  const RankFileBuilder second = attempt(1, 3, kStartTimeNs + kHour);
  EXPECT_EQ(steps_of(merge(true)), std::vector<std::int64_t>({0, 1, 2}));
}

TEST_F(RunMergeTest, WhatWasGivenOutWhileRunningIsAPrefixOfTheWhole) {
  RankFileBuilder file = job_.open(logs_.path(), 0);
  std::vector<std::string> before;
  for (int step = 0; step < 20; ++step) {
    file.row(step, {{"loss", step / 7.0}});
    if (step % 3 == 0) file.row(step, {{"acc", step}});
    if (step % 5 == 4) file.seal();
    const auto now = merge(true).lines;
    ASSERT_GE(now.size(), before.size());
    ASSERT_TRUE(std::equal(before.begin(), before.end(), now.begin()));
    before = now;
  }
  file.finish();
  const auto whole = merge().lines;
  EXPECT_EQ(whole.size(), 20U);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), whole.begin()));
}

TEST_F(RunMergeTest, SyncedStepMetricIsFilledIn) {
  RankFileBuilder file = job_.open(logs_.path(), 0);
  MetricDefinition definition;
  definition.name = "val/*";
  definition.step_metric = "epoch";
  definition.step_sync = true;
  file.operation(definition);
  file.row(0, {{"val/acc", 0.1}});
  file.row(1, {{"epoch", 1}});
  file.row(2, {{"val/acc", 0.2}});
  file.row(3, {{"loss", 0.2}});
  file.finish();
  const auto lines = merge().lines;
  EXPECT_FALSE(json::parse(lines[0]).contains("epoch"));
  EXPECT_EQ(json::parse(lines[2])["epoch"], 1);
  EXPECT_FALSE(json::parse(lines[3]).contains("epoch"));
}

TEST_F(RunMergeTest, SummaryFollowsDefinitionsAndOverrides) {
  RankFileBuilder file = job_.open(logs_.path(), 0);
  MetricDefinition definition;
  definition.name = "acc";
  definition.summary = {"max", "last"};
  file.operation(definition);
  file.operation(SummaryOverride{"best", "\"ckpt-3\""});
  file.row(0, {{"acc", 0.5}, {"loss", 3}}).row(1, {{"acc", 0.9}, {"loss", 2}}).row(2, {{"acc", 0.7}});
  file.finish();
  const json summary = merge().summary;
  EXPECT_EQ(summary["acc"], json::parse(R"({"max":0.9,"last":0.7})"));
  EXPECT_EQ(summary["loss"], 2);
  EXPECT_EQ(summary["best"], "ckpt-3");
  EXPECT_EQ(summary["_step"], 2);
}

}  // namespace
}  // namespace ranklog::sync
