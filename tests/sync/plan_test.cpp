#include "ranklog/sync/plan.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "artifact_plan.hpp"
#include "experiments.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/sync/plan_view.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::sync {
namespace {

using ranklog::test::TempDir;
using ranklog::test::write_file;
using test::add_artifact;
using test::Job;
using test::RankFileBuilder;

constexpr std::int64_t kLater = test::kStartTimeNs + 3'600'000'000'000;

class PlanTest : public ::testing::Test {
 protected:
  Plan plan(PlanOptions options = {}) const {
    options.now_ns = kLater;
    const std::vector<std::filesystem::path> inputs = {logs_.path()};
    return make_plan(inputs, options);
  }
  static PlanOptions strategy(Strategy strategy) {
    PlanOptions options;
    options.strategy = strategy;
    return options;
  }
  static std::vector<int> ranks_of(const PlannedExperiment& planned) {
    std::vector<int> ranks;
    for (const PlannedRun& run : planned.runs) ranks.push_back(run.rank);
    return ranks;
  }

  TempDir logs_;
};

TEST_F(PlanTest, TwoNodesOfFourRanksMakeOneTwoOrEightRuns) {
  Job().write(logs_.path(), 2);
  EXPECT_EQ(ranks_of(plan(strategy(Strategy::kMain)).experiments.at(0)), std::vector<int>({0}));
  EXPECT_EQ(ranks_of(plan(strategy(Strategy::kNode)).experiments.at(0)), std::vector<int>({0, 4}));
  EXPECT_EQ(ranks_of(plan(strategy(Strategy::kAll)).experiments.at(0)),
            std::vector<int>({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(PlanTest, RunsStandForAllForTheirNodesOrForTheirOwnRank) {
  Job().write(logs_.path(), 1);
  EXPECT_EQ(plan(strategy(Strategy::kMain)).experiments.at(0).runs.at(0).ranks.size(), 8U);
  EXPECT_EQ(plan(strategy(Strategy::kNode)).experiments.at(0).runs.at(1).ranks,
            std::vector<int>({4, 5, 6, 7}));
  EXPECT_EQ(plan(strategy(Strategy::kAll)).experiments.at(0).runs.at(5).ranks, std::vector<int>({5}));
}

TEST_F(PlanTest, NamesIdsAndGroupsTable) {
  const struct {
    Strategy strategy;
    std::string name, group, run_id;  // what the user set
    std::string want_id, want_name, want_group;
  } kTable[] = {
      {Strategy::kMain, "", "", "", "exp-7-main-r0-", "exp-7", "exp-7"},
      {Strategy::kMain, "big", "g", "", "exp-7-main-r0-", "big", "g"},
      {Strategy::kMain, "", "", "mine", "mine", "exp-7", "exp-7"},
      {Strategy::kNode, "", "g", "mine", "exp-7-node-r0-", "rank-0", "g"},
      {Strategy::kNode, "big", "", "", "exp-7-node-r0-", "big-rank-0", "exp-7"},
      {Strategy::kAll, "", "g", "", "exp-7-all-r0-", "rank-0", "g"},
      {Strategy::kAll, "big", "g", "mine", "exp-7-all-r0-", "big-rank-0", "g"},
  };
  for (const auto& row : kTable) {
    const TempDir logs;
    Job job;
    job.nodes = job.ranks_per_node = 1;
    job.adjust = [&](Identity& identity) {
      identity.name = row.name;
      identity.group = row.group;
      identity.wandb_run_id = row.run_id;
    };
    job.write(logs.path(), 1);
    const std::vector<std::filesystem::path> inputs = {logs.path()};
    const Plan made = make_plan(inputs, strategy(row.strategy));
    const PlannedRun& run = made.experiments.at(0).runs.at(0);
    const bool derived = row.want_id.ends_with('-');
    const std::string suffix = sha256_hex("distributed-wandb/exp-7").substr(0, 8);
    EXPECT_EQ(run.id, derived ? row.want_id + suffix : row.want_id);
    EXPECT_EQ(run.name, row.want_name);
    EXPECT_EQ(run.group, row.want_group);
  }
}

TEST(RunIdTest, SlugIsSafeAndAtMostThirtyTwoLong) {
  EXPECT_TRUE(derived_run_id("p", "my exp: #7/x", Strategy::kAll, 12).starts_with("my-exp-7-x-all-r12-"));
  EXPECT_TRUE(derived_run_id("p", std::string(60, 'a'), Strategy::kMain, 0)
                  .starts_with(std::string(32, 'a') + "-main"));
  EXPECT_TRUE(
      derived_run_id("p", "\xE5\xAE\x9E\xE9\xAA\x8C", Strategy::kMain, 0).starts_with("run-main-r0-"));
  EXPECT_NE(derived_run_id("p", "e", Strategy::kMain, 0), derived_run_id("q", "e", Strategy::kMain, 0));
}

TEST_F(PlanTest, RecordedStrategyIsTheDefault) {
  Job job;
  job.adjust = [](Identity& identity) { identity.log_strategy = Strategy::kNode; };
  job.write(logs_.path(), 1);
  EXPECT_EQ(plan().experiments.at(0).strategy, Strategy::kNode);
  EXPECT_EQ(plan(strategy(Strategy::kAll)).experiments.at(0).strategy, Strategy::kAll);
}

TEST_F(PlanTest, WithoutARecordedStrategyItIsMain) {
  Job().write(logs_.path(), 1);
  EXPECT_EQ(plan().experiments.at(0).strategy, Strategy::kMain);
}

TEST_F(PlanTest, MissingRanksAreNamed) {
  const Job job;
  job.write(logs_.path(), 1);
  std::filesystem::remove(job.folder(logs_.path()) / "rank-00003.db");
  const Plan made = plan(strategy(Strategy::kAll));
  EXPECT_EQ(made.experiments.at(0).missing_ranks, std::vector<int>({3}));
  EXPECT_EQ(made.experiments.at(0).runs.size(), 7U);
  EXPECT_NE(plan_text(view_plan(made, StopFlag{})).find("no file of rank 3 (world size 8)"),
            std::string::npos);
}

TEST_F(PlanTest, UnderAllARankWithoutAFileLeavesThePlanPartial) {
  const Job job;
  job.write(logs_.path(), 1);
  std::filesystem::remove(job.folder(logs_.path()) / "rank-00003.db");
  const Plan all = plan(strategy(Strategy::kAll));
  ASSERT_EQ(all.experiments.at(0).problems.size(), 1U);
  EXPECT_NE(all.experiments.at(0).problems.at(0).message.find("rank 3"), std::string::npos);
  EXPECT_EQ(exit_status(view_plan(all, StopFlag{})), kExitFailed);
  for (const Strategy other : {Strategy::kMain, Strategy::kNode}) {
    EXPECT_EQ(exit_status(view_plan(plan(strategy(other)), StopFlag{})), kExitOk);
  }
}

TEST_F(PlanTest, UnderNodeANodeWithoutAnyFileIsNamed) {
  const Job job;
  job.write(logs_.path(), 1);
  for (int rank = 4; rank < 8; ++rank) {
    std::filesystem::remove(job.folder(logs_.path()) / ("rank-0000" + std::to_string(rank) + ".db"));
  }
  const Plan made = plan(strategy(Strategy::kNode));
  ASSERT_EQ(made.experiments.at(0).problems.size(), 1U);
  EXPECT_NE(made.experiments.at(0).problems.at(0).message.find("from 4 to 7"), std::string::npos);
}

TEST_F(PlanTest, UnderNodeFilesThatMakeNoRunAreNoSuccess) {
  const Job job;
  job.write(logs_.path(), 1);
  for (const int leader : {0, 4}) {
    std::filesystem::remove(job.folder(logs_.path()) / ("rank-0000" + std::to_string(leader) + ".db"));
  }
  const Plan made = plan(strategy(Strategy::kNode));
  EXPECT_TRUE(made.experiments.at(0).runs.empty());
  EXPECT_EQ(exit_status(view_plan(made, StopFlag{})), kExitFailed);
  EXPECT_NE(plan_text(view_plan(made, StopFlag{})).find("node 1 has no file of its local rank 0"),
            std::string::npos);
}

TEST_F(PlanTest, AnIdThatCannotBeIsCalledThat) {
  Job().write(logs_.path(), 1);
  PlanOptions options = strategy(Strategy::kMain);
  options.run_id = "a/b";
  const Plan made = plan(options);
  ASSERT_EQ(made.experiments.at(0).problems.size(), 1U);
  EXPECT_NE(made.experiments.at(0).problems[0].message.find("a/b"), std::string::npos);
  options = strategy(Strategy::kAll);
  options.run_id = "one";
  EXPECT_THROW((void)plan(options), Error) << "of eight runs";
}

TEST_F(PlanTest, NamesReachTheTerminalWithoutControlCharacters) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  job.adjust = [&](Identity& identity) {
    identity.name = "red\x1b[31m\nline";
    identity.group = "g\rg";
  };
  job.write(logs_.path(), 1);
  const std::string text = plan_text(view_plan(plan(), StopFlag{}));
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos) << text;
  EXPECT_NE(text.find("red\\x1b[31m\\nline"), std::string::npos) << text;
}

TEST_F(PlanTest, NamesThatTheServerWouldRefuseAreFoundBeforeAnythingIsSent) {
  for (const char* id : {"a/b", "a:b", "a b#", " a", "a;b", "it's"}) {
    const TempDir logs;
    Job job;
    job.nodes = job.ranks_per_node = 1;
    job.adjust = [&](Identity& identity) { identity.wandb_run_id = id; };
    job.write(logs.path(), 1);
    const std::vector<std::filesystem::path> inputs = {logs.path()};
    const Plan made = make_plan(inputs, strategy(Strategy::kMain));
    EXPECT_TRUE(made.experiments.at(0).runs.empty()) << id;
    ASSERT_EQ(made.experiments.at(0).problems.size(), 1U) << id;
    EXPECT_EQ(made.experiments.at(0).problems[0].code, ErrorCode::kUsage);
    EXPECT_NE(made.experiments.at(0).problems[0].message.find("--id"), std::string::npos);
  }
}

TEST_F(PlanTest, LongNameIsCutWithAWarningAndATagOutsideTheLimitsIsLeftOut) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  std::string long_name;
  for (int i = 0; i < 130; ++i) long_name += "\xC3\xA9";
  job.adjust = [&](Identity& identity) {
    identity.name = long_name;
    identity.tags = {"good", std::string(65, 't')};
  };
  job.write(logs_.path(), 1);
  const Plan made = plan();
  EXPECT_EQ(made.experiments.at(0).runs.at(0).name, long_name.substr(0, 256));
  EXPECT_EQ(made.experiments.at(0).warnings.size(), 1U);
  ASSERT_EQ(made.experiments.at(0).problems.size(), 1U);
  EXPECT_NE(made.experiments.at(0).problems[0].message.find("1 to 64"), std::string::npos);
}

TEST_F(PlanTest, PlanOfDamagedRowsExitsAsItsPushWould) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  job.write(logs_.path(), 1);
  const auto file = job.folder(logs_.path()) / "rank-00000.db";
  ranklog::test::ruin_chunks(file);
  EXPECT_EQ(exit_status(view_plan(plan(), StopFlag{})), kExitDamaged);
}

TEST_F(PlanTest, StopEndsAnEstimate) {
  Job().write(logs_.path(), 2);
  StopFlag stop;
  stop.raise(15);
  EXPECT_THROW((void)view_plan(plan(), stop), Error);
}

TEST_F(PlanTest, NewestStepOfASilentWriterIsHeldForHours) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  RankFileBuilder file = job.open(logs_.path(), 0);
  file.row(0, {{"loss", 1.0}}).row(1, {{"loss", 1.0}});
  const auto run_after = [&](std::int64_t seconds) {
    PlanOptions options;
    options.now_ns = test::kStartTimeNs + seconds * 1'000'000'000;
    const std::vector<std::filesystem::path> inputs = {logs_.path()};
    const Plan made = make_plan(inputs, options);
    const PlannedRun& run = made.experiments.at(0).runs.at(0);
    return std::tuple(run.state, run.newest_step_open,
                      estimate_run(made.experiments.at(0), run, StopFlag{}).steps);
  };
  EXPECT_NE(plan_text(view_plan(plan(), StopFlag{})).find("held back"), std::string::npos);
  EXPECT_EQ(run_after(60), std::tuple(RunState::kRunning, true, 1U));
  EXPECT_EQ(run_after(3'600), std::tuple(RunState::kCrashed, true, 1U));
  EXPECT_EQ(run_after(7 * 3'600), std::tuple(RunState::kCrashed, false, 2U));
}

TEST_F(PlanTest, FingerprintChangesWithTheRanksThatARunStandsFor) {
  const Job job;
  job.write(logs_.path(), 1);
  const auto fingerprint = [&] {
    const Plan made = plan(strategy(Strategy::kNode));
    return input_fingerprint(made.experiments.at(0), made.experiments.at(0).runs.at(1));
  };
  const std::string whole = fingerprint();
  std::filesystem::remove(job.folder(logs_.path()) / "rank-00005.db");
  EXPECT_NE(fingerprint(), whole);
}

TEST_F(PlanTest, FileTooLargeForOnePutIsFoundByThePlan) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  RankFileBuilder file = job.open(logs_.path(), 0);
  file.row(0, {{"loss", 1.0}});
  Artifact artifact;
  artifact.name = "model";
  artifact.type = "model";
  constexpr std::uint64_t kSize = (std::uint64_t{5} << 30) + 1;
  artifact.files = {{"model.pt", "model.pt", kSize, md5_hex(""), sha256_hex("")}};
  write_file(job.folder(logs_.path()) / "model.pt", "");
  std::filesystem::resize_file(job.folder(logs_.path()) / "model.pt", kSize);
  file.operation(artifact).finish();
  const PlanView view = view_plan(plan(), StopFlag{});
  EXPECT_EQ(exit_status(view), kExitFailed);
  EXPECT_NE(plan_text(view).find("5 GiB"), std::string::npos) << plan_text(view);
}

TEST_F(PlanTest, MainWithoutRankZeroAsksForMainRank) {
  const Job job;
  job.write(logs_.path(), 1);
  std::filesystem::remove(job.folder(logs_.path()) / "rank-00000.db");
  const Plan made = plan(strategy(Strategy::kMain));
  EXPECT_TRUE(made.experiments.at(0).runs.empty());
  EXPECT_NE(made.experiments.at(0).problems.at(0).message.find("--main-rank"), std::string::npos);
  PlanOptions options = strategy(Strategy::kMain);
  options.main_rank = 2;
  EXPECT_EQ(ranks_of(plan(options).experiments.at(0)), std::vector<int>({2}));
}

TEST_F(PlanTest, NodeWithoutItsLeaderMakesNoRunAndIsNamed) {
  const Job job;
  job.write(logs_.path(), 1);
  std::filesystem::remove(job.folder(logs_.path()) / "rank-00004.db");
  const Plan made = plan(strategy(Strategy::kNode));
  EXPECT_EQ(ranks_of(made.experiments.at(0)), std::vector<int>({0}));
  EXPECT_NE(made.experiments.at(0).problems.at(0).message.find("node 1"), std::string::npos);
}

TEST_F(PlanTest, DamagedRankFileIsNamedWithItsExperiment) {
  const Job job;
  job.write(logs_.path(), 1);
  write_file(job.folder(logs_.path()) / "rank-00002.db", "SQLite format 3");
  const Plan made = plan(strategy(Strategy::kAll));
  ASSERT_EQ(made.experiments.at(0).problems.size(), 1U);
  EXPECT_NE(made.experiments.at(0).problems.at(0).message.find("rank-00002.db"), std::string::npos);
  EXPECT_EQ(made.experiments.at(0).runs.size(), 7U);
}

TEST_F(PlanTest, OptionsReplaceWhatTheFilesSay) {
  Job().write(logs_.path(), 1);
  PlanOptions options;
  options.entity = "acme";
  options.project = "other";
  options.group = "g2";
  options.job_type = "eval";
  options.run_id = "chosen";
  const Plan made = plan(options);
  const PlannedExperiment& planned = made.experiments.at(0);
  EXPECT_EQ(planned.entity, "acme");
  EXPECT_EQ(planned.project, "other");
  EXPECT_EQ(planned.runs.at(0).group, "g2");
  EXPECT_EQ(planned.runs.at(0).job_type, "eval");
  EXPECT_EQ(planned.runs.at(0).id, "chosen");
}

TEST_F(PlanTest, OneIdForSeveralRunsIsRefused) {
  Job().write(logs_.path(), 1);
  PlanOptions options = strategy(Strategy::kAll);
  options.run_id = "chosen";
  EXPECT_THROW((void)plan(options), Error);
}

TEST_F(PlanTest, FingerprintChangesWithRowsStateAndNames) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  RankFileBuilder file = job.open(logs_.path(), 0);
  file.row(0, {{"loss", 1.0}});
  const auto fingerprint = [&](const PlanOptions& options = {}) {
    const Plan made = plan(options);
    return input_fingerprint(made.experiments.at(0), made.experiments.at(0).runs.at(0));
  };
  const std::string one_row = fingerprint();
  EXPECT_EQ(one_row, fingerprint());
  PlanOptions other_group;
  other_group.group = "g";
  EXPECT_NE(one_row, fingerprint(other_group));
  file.row(1, {{"loss", 1.0}});
  const std::string two_rows = fingerprint();
  EXPECT_NE(one_row, two_rows);
  file.finish();
  EXPECT_NE(two_rows, fingerprint());
}

TEST_F(PlanTest, EstimateCountsRowsBytesAndRequests) {
  Job().write(logs_.path(), 5);
  const Plan made = plan();
  const RunEstimate cost =
      estimate_run(made.experiments.at(0), made.experiments.at(0).runs.at(0), StopFlag{});
  EXPECT_EQ(cost.rows, 5U);
  EXPECT_EQ(cost.steps, 5U);
  EXPECT_GT(cost.bytes, 5U * 60);
  EXPECT_EQ(cost.requests, 10U);
}

class ArtifactPlanTest : public PlanTest {
 protected:
  ArtifactPlanTest() { job_.nodes = 1; }
  std::vector<PlannedArtifact> artifacts() const { return plan_artifacts(test::scan_one(logs_.path())); }
  Job job_;
};

TEST_F(ArtifactPlanTest, WhatSeveralRanksRecordAlikeIsOneVersion) {
  for (int rank = 0; rank < 3; ++rank) {
    RankFileBuilder file = job_.open(logs_.path(), rank);
    add_artifact(file, "model", "checkpoints/a/model.pt", 1, "A");
    add_artifact(file, "model", "checkpoints/b/model.pt", 2, "B");
    file.finish();
  }
  const auto made = artifacts();
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].artifact.step, 1);
  EXPECT_EQ(made[1].artifact.step, 2);
  EXPECT_EQ(made[0].sequence_client_id, made[1].sequence_client_id);
  EXPECT_NE(made[0].client_id, made[1].client_id);
}

TEST_F(ArtifactPlanTest, ContentThatComesBackIsAVersionOfItsOwnAndARepeatIsNot) {
  RankFileBuilder file = job_.open(logs_.path(), 0);
  add_artifact(file, "model", "checkpoints/a/model.pt", 1, "A");
  add_artifact(file, "model", "checkpoints/a/model.pt", 2, "A");
  add_artifact(file, "model", "checkpoints/b/model.pt", 3, "B");
  add_artifact(file, "model", "checkpoints/a/model.pt", 4, "A");
  file.finish();
  const auto made = artifacts();
  ASSERT_EQ(made.size(), 3U);
  EXPECT_EQ(made[0].digest, made[2].digest);
  EXPECT_NE(made[0].client_id, made[2].client_id);
  EXPECT_EQ(made[0].artifact.aliases, std::vector<std::string>({"step-1", "step-2"}));
}

TEST_F(ArtifactPlanTest, AliasIsThatOfTheLastVersionThatWasGivenIt) {
  RankFileBuilder file = job_.open(logs_.path(), 0);
  add_artifact(file, "model", "checkpoints/a/model.pt", 1, "A");
  add_artifact(file, "model", "checkpoints/b/model.pt", 1, "B");
  file.finish();
  const auto made = artifacts();
  ASSERT_EQ(made.size(), 2U);
  EXPECT_TRUE(made[0].artifact.aliases.empty());
  EXPECT_EQ(made[1].artifact.aliases, std::vector<std::string>({"step-1"}));
}

TEST_F(ArtifactPlanTest, ClientIdsAre128LowerCaseCharactersAndStable) {
  const std::string id = deterministic_client_id("seed");
  EXPECT_EQ(id.size(), 128U);
  EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
  EXPECT_EQ(id, deterministic_client_id("seed"));
  EXPECT_NE(id, deterministic_client_id("seeds"));
}

// The protocol page's vectors, which agree with W&B's own code.
TEST(ManifestDigestTest, AgreesWithTheKnownValues) {
  const auto file = [](const std::string& content) { return base64_of_hex(md5_hex(content)); };
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  EXPECT_EQ(manifest_digest({{"a.txt", file("hello\n")}, {"dir/b.bin", file(bytes)}}),
            "e2c67e5f6fe46d434b500e7c2a821011");
  EXPECT_EQ(manifest_digest({}), "64e7c61456b10382e2f3b571ac24b659");
  EXPECT_EQ(manifest_digest({{"ref.csv", "s3://bucket/ref.csv"}}), "18d3e1273a6a50ecaa19b157c61e42c9");
  EXPECT_EQ(manifest_digest({{"Z.txt", file("Z")},
                             {"a-1", file("x")},
                             {"a.txt", file("a")},
                             {"a/1", file("1")},
                             {"\xC3\xA9", file("e")}}),
            "76da1355c070f93375dfdb338085f427");
  EXPECT_EQ(manifest_digest({{"great-file.txt", file("hello")}}), "585b9ada17797e37c9cbab391e69b8c5");
}

TEST(RankListTest, RunsOfRanksAreShortened) {
  EXPECT_EQ(rank_list({}), "");
  EXPECT_EQ(rank_list({3}), "3");
  EXPECT_EQ(rank_list({0, 1}), "0,1");
  EXPECT_EQ(rank_list({0, 1, 2, 3, 8, 10, 11, 12}), "0-3,8,10-12");
}

}  // namespace
}  // namespace ranklog::sync
