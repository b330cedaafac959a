// Whole jobs whose ranks must first agree: on settings, on places, on what they go on from.

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "job.hpp"
#include "ranklog/trainer/checkpoint_folder.hpp"

namespace ranklog::test {
namespace {

using Ranks = std::vector<std::unique_ptr<Process>>;

class AgreeingJob : public Job {
 protected:
  // Two ranks that differ in what is added to the second one's flags.
  Ranks start_two(const Arguments& common, const Arguments& of_zero, const Arguments& of_one) {
    const std::uint16_t port = pick_free_port();
    Ranks ranks;
    for (const Arguments* own : {&of_zero, &of_one}) {
      Arguments arguments = common;
      arguments.insert(arguments.end(), own->begin(), own->end());
      ranks.push_back(start_rank(static_cast<int>(ranks.size()), 2, port, arguments));
    }
    return ranks;
  }
  void expect_run(const Arguments& arguments, const Variables& variables = {}) {
    const auto job = start(arguments, variables);
    ASSERT_EQ(job->wait(), 0) << job->errors();
  }
  [[nodiscard]] std::filesystem::path folder_of(const std::string& run) const {
    return folder().parent_path() / run;
  }
  [[nodiscard]] std::int64_t newest_step(const std::string& run) const {
    const auto newest = find_newest_checkpoint(folder_of(run) / "checkpoints");
    return newest.found ? newest.found->manifest.step : -1;
  }
};

TEST_F(AgreeingJob, TheGuidesVariablesAloneLeadToTheEnd) {
  const std::uint16_t port = pick_free_port();
  Ranks ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back(start_rank(rank, 2, port, {"--run_id", "job", "--epochs", "1"}));
  }
  for (const auto& rank : ranks) ASSERT_EQ(rank->wait(), 0) << rank->errors();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(rank_file(rank).info().end_state, EndState::kFinished);
    EXPECT_EQ(rank_file(rank).info().identity.local_rank, rank);
    EXPECT_EQ(rank_file(rank).info().identity.node, 0);
    EXPECT_EQ(rank_file(rank).info().identity.local_world_size, 2);
  }
}

// Nothing but the counts tells the nodes apart, as where somebody starts two ranks on each of two machines.
TEST_F(AgreeingJob, TheGuidesVariablesOfTwoNodesLeadToOneRunANode) {
  const std::uint16_t port = pick_free_port();
  Ranks ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(start_rank(rank, 4, port, {"--run_id", "job", "--epochs", "1"},
                               {{"LOCAL_RANK", std::to_string(rank % 2)}, {"LOCAL_WORLD_SIZE", "2"}}));
  }
  for (const auto& rank : ranks) ASSERT_EQ(rank->wait(), 0) << rank->errors();
  for (int rank = 0; rank < 4; ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const Identity identity = rank_file(rank).info().identity;
    EXPECT_EQ(identity.node, rank / 2);
    EXPECT_EQ(identity.local_rank, rank % 2);
    EXPECT_EQ(identity.local_world_size, 2);
    EXPECT_EQ(identity.world_size, 4);
  }
#ifdef RANKLOG_WANDB_SYNC
  Process sync(RANKLOG_WANDB_SYNC, {"plan", log_dir().string(), "--strategy", "node", "--json"});
  ASSERT_EQ(sync.wait(), 0) << sync.errors();
  std::vector<int> chosen;
  const auto plan = nlohmann::json::parse(sync.output());
  for (const auto& run : plan.at("experiments").at(0).at("runs")) chosen.push_back(run.at("rank").get<int>());
  EXPECT_EQ(chosen, (std::vector<int>{0, 2}));
#endif
}

TEST_F(AgreeingJob, RanksWithDifferentSettingsAreRefusedByName) {
  struct Case {
    Arguments zero, one;
    std::string difference;
  };
  const std::vector<Case> cases{
      {{"--lr", "0.05"}, {"--lr", "0.5"}, "rank 1 was started with --lr 0.5, and rank 0 with --lr 0.05"},
      {{"--batch_size", "16"},
       {"--batch_size", "8"},
       "rank 1 was started with --batch_size 8, and rank 0 with --batch_size 16"},
      {{}, {"--resume"}, "rank 1 was started with --resume or RANKLOG_RESUME auto, and rank 0 without"}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.difference);
    const Ranks ranks = start_two({"--run_id", "job", "--epochs", "1"}, one.zero, one.one);
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank->wait(), kExitUsage);
      EXPECT_NE(rank->errors().find(one.difference), std::string::npos) << rank->errors();
    }
    EXPECT_FALSE(std::filesystem::exists(log_dir())) << "no log was begun";
  }
}

TEST_F(AgreeingJob, RanksWithDifferentImagesAreRefused) {
  std::string rows;
  for (int row = 0; row < 200; ++row) {
    for (int pixel = 0; pixel < 64; ++pixel) rows += std::to_string((row + pixel) % 17) + ",";
    rows += std::to_string(row % 10) + "\n";
  }
  write_file(dir_ / "one.csv", rows);
  rows[0] = '9';
  write_file(dir_ / "other.csv", rows);
  const Ranks ranks = start_two({"--epochs", "1"}, {"--data", (dir_ / "one.csv").string()},
                                {"--data", (dir_ / "other.csv").string()});
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->wait(), kExitUsage);
    EXPECT_NE(rank->errors().find("rank 1 was started with --data of digest "), std::string::npos)
        << rank->errors();
  }
}

// As mpirun --host a:1,b:1,c:2 says, but on one host: the counts alone would put three ranks on node 1.
TEST_F(AgreeingJob, NodesThatCannotBeToldAreRefused) {
  const std::uint16_t port = pick_free_port();
  const std::vector<std::string> sizes{"1", "1", "2", "2"};
  const std::vector<std::string> local_ranks{"0", "0", "0", "1"};
  Ranks ranks;
  for (std::size_t i = 0; i < 4; ++i) {
    ranks.push_back(
        start({"--run_id", "job", "--epochs", "1"}, {{"OMPI_COMM_WORLD_RANK", std::to_string(i)},
                                                     {"OMPI_COMM_WORLD_SIZE", "4"},
                                                     {"OMPI_COMM_WORLD_LOCAL_RANK", local_ranks[i]},
                                                     {"OMPI_COMM_WORLD_LOCAL_SIZE", sizes[i]},
                                                     {"MASTER_ADDR", "127.0.0.1"},
                                                     {"MASTER_PORT", std::to_string(port)}}));
  }
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->wait(), kExitUsage) << rank->errors();
    EXPECT_NE(rank->errors().find("set GROUP_RANK"), std::string::npos) << rank->errors();
  }
}

TEST_F(AgreeingJob, TheLearningRateAndTheSeedDecideWhatIsLearned) {
  expect_run({"--run_id", "job", "--epochs", "1"});
  expect_run({"--run_id", "same", "--epochs", "1"});
  expect_run({"--run_id", "lr", "--epochs", "1", "--lr", "0.01"});
  expect_run({"--run_id", "seed", "--epochs", "1", "--seed", "2"});
  const auto losses = [&](const std::string& run) {
    return series(RankFile::open(folder_of(run) / "rank-00000.db"), "loss");
  };
  const auto usual = losses("job");
  EXPECT_EQ(losses("same"), usual);
  EXPECT_EQ(losses("lr").at(0), usual.at(0)) << "the first loss is that of the first parameters";
  EXPECT_NE(losses("lr").at(1), usual.at(1));
  EXPECT_NE(losses("seed").at(0), usual.at(0));
  EXPECT_EQ(series(RankFile::open(folder_of("lr") / "rank-00000.db"), "lr").at(5), 0.01);
}

TEST_F(AgreeingJob, ARestartedSiblingGoesOnWithItsOwnCheckpoint) {
  const Variables launch{{"SLURM_JOB_ID", "9"}};
  expect_run({"--run_id", "job", "--epochs", "2"});
  expect_run({"--run_id", "job", "--epochs", "1"}, launch);
  const std::int64_t first = newest_step("job");
  const std::int64_t sibling = newest_step("job~2");
  ASSERT_NE(first, sibling);
  const auto restarted =
      start({"--run_id", "job", "--epochs", "3"}, {{"SLURM_JOB_ID", "9"}, {"SLURM_RESTART_COUNT", "1"}});
  ASSERT_EQ(restarted->wait(), 0) << restarted->errors();
  EXPECT_NE(restarted->errors().find("resuming at step " + std::to_string(sibling) + " from " +
                                     (folder_of("job~2") / "checkpoints").string()),
            std::string::npos)
      << restarted->errors();
  EXPECT_EQ(newest_step("job"), first);
  EXPECT_EQ(newest_step("job~2"), 3 * sibling);
  EXPECT_EQ(RankFile::open(folder_of("job~2") / "rank-00000.1.db").info().identity.resume_step, sibling);
}

TEST_F(AgreeingJob, EveryWayToAskForResumptionLoadsTheCheckpoint) {
  expect_run({"--run_id", "job", "--epochs", "1"});
  int epochs = 1;
  for (const char* wish : {"1", "auto"}) {
    const auto job = start({"--nproc_per_node", "1", "--run_id", "job", "--epochs", std::to_string(++epochs)},
                           {{"RANKLOG_RESUME", wish}});
    ASSERT_EQ(job->wait(), 0) << job->errors();
    EXPECT_NE(job->errors().find("resuming at step " + std::to_string(89 * (epochs - 1))), std::string::npos)
        << job->errors();
  }
  EXPECT_EQ(start({"--run_id", "new", "--epochs", "1"}, {{"RANKLOG_RESUME", "1"}})->wait(), kExitFailed);
  EXPECT_FALSE(std::filesystem::exists(folder_of("new")));
}

TEST_F(AgreeingJob, ACompleteRunIsNotBegunAnew) {
  expect_run({"--nproc_per_node", "2", "--run_id", "job", "--epochs", "2"});
  const auto first = start({"--nproc_per_node", "2", "--run_id", "job", "--epochs", "2", "--resume"});
  ASSERT_EQ(first->wait(), 0) << first->errors();
  EXPECT_NE(first->errors().find("run job is already complete"), std::string::npos) << first->errors();
  double accuracy = 0;
  ASSERT_EQ(std::sscanf(first->output().c_str(), "test accuracy %lf", &accuracy), 1) << first->output();
  const auto logged = series(rank_file(0), "test_accuracy");
  EXPECT_NEAR(accuracy, logged.rbegin()->second, 1e-5);
  EXPECT_FALSE(std::filesystem::exists(folder() / "rank-00000.1.db")) << "an attempt without rows";
}

// A run without logs leaves checkpoints that no log tells of, as a kill right after publishing does.
TEST_F(AgreeingJob, CheckpointsThatWereNeverRecordedAreRecordedOnResume) {
  expect_run({"--run_id", "job", "--epochs", "2"}, {{"WANDB_MODE", "disabled"}});
  for (const char* epochs : {"3", "4"}) {
    const auto job = start({"--run_id", "job", "--epochs", epochs, "--resume"});
    ASSERT_EQ(job->wait(), 0) << job->errors();
    EXPECT_NE(job->errors().find("resuming at step "), std::string::npos) << job->errors();
  }
  std::vector<std::string> first;
  for (const Artifact& artifact : rank_file(0).artifacts()) first.push_back(artifact.aliases.at(0));
  EXPECT_EQ(first, (std::vector<std::string>{"epoch-1", "epoch-2", "epoch-3"}));
  ASSERT_EQ(rank_file(0, 1).artifacts().size(), 1U) << "each once";
  EXPECT_EQ(rank_file(0, 1).artifacts()[0].aliases.at(0), "epoch-4");
}

TEST_F(AgreeingJob, ARunWithoutLogsIsKeptApartFromOthersAndFromItself) {
  expect_run({"--epochs", "1"}, {{"WANDB_MODE", "disabled"}});
  expect_run({"--epochs", "1"}, {{"WANDB_MODE", "disabled"}});
  std::size_t runs = 0;
  for (const auto& run : std::filesystem::directory_iterator(folder().parent_path())) {
    ++runs;
    EXPECT_NE(run.path().filename(), "untracked");
    EXPECT_EQ(list_published_checkpoints(run.path() / "checkpoints").size(), 1U);
  }
  EXPECT_EQ(runs, 2U);
}

TEST_F(AgreeingJob, AFolderWithoutRankFilesIsNoHindrance) {
  std::filesystem::create_directories(folder());
  write_file(folder() / "experiment.json", "{}");
  expect_run({"--run_id", "job", "--epochs", "1", "--resume"});
  EXPECT_EQ(rank_file(0).info().end_state, EndState::kFinished);
}

TEST_F(AgreeingJob, KeepNeverCountsADamagedCheckpoint) {
  expect_run({"--run_id", "job", "--epochs", "2"});
  const auto newest = find_newest_checkpoint(folder() / "checkpoints").found->folder;
  std::filesystem::resize_file(newest / "model.pt", 100);
  const auto job = start(
      {"--run_id", "job", "--epochs", "10000", "--checkpoint_interval", "0", "--resume", "--keep", "1"});
  ASSERT_TRUE(job->wait_for_error_output("resuming at step 89 ")) << job->errors();
  job->send(SIGTERM);
  ASSERT_EQ(job->wait(), kExitTemporary) << job->errors();
  const NewestCheckpoint found = find_newest_checkpoint(folder() / "checkpoints");
  ASSERT_TRUE(found.found) << "the one that was just saved";
  EXPECT_TRUE(found.skipped.empty());
  EXPECT_TRUE(std::filesystem::exists(newest.parent_path() / ("damaged-" + newest.filename().string())));
}

// Who asks to go on must not find himself at the beginning.
TEST_F(AgreeingJob, WhereNoCheckpointIsWholeNothingBeginsAnew) {
  expect_run({"--run_id", "job", "--epochs", "2"});
  for (const std::string& name : list_published_checkpoints(folder() / "checkpoints")) {
    std::filesystem::resize_file(folder() / "checkpoints" / name / "model.pt", 100);
  }
  for (int again = 0; again < 2; ++again) {
    const auto job = start({"--run_id", "job", "--epochs", "3", "--resume"});
    EXPECT_EQ(job->wait(), kExitDamaged);
    EXPECT_NE(job->errors().find("no checkpoint can be resumed from"), std::string::npos) << job->errors();
    EXPECT_NE(job->errors().find("to begin at step 0"), std::string::npos) << job->errors();
  }
  std::filesystem::remove_all(folder() / "checkpoints");
  expect_run({"--run_id", "job", "--epochs", "1", "--resume"});
}

// As --log_dir "$UNSET" has them.
TEST_F(AgreeingJob, EmptyNamesAreThoseThatWereNotGiven) {
  const auto job = start({"--project", "", "--run_id", "unset", "--epochs", "1"});
  EXPECT_EQ(job->wait(), 0) << job->errors();
  EXPECT_TRUE(std::filesystem::exists(folder().parent_path().parent_path() / "distributed-wandb" / "unset" /
                                      "rank-00000.db"));
}

}  // namespace
}  // namespace ranklog::test
