// Whole jobs that go well.

#include "job.hpp"

#include <csignal>
#include <nlohmann/json.hpp>

#include "ranklog/trainer/checkpoint_folder.hpp"

namespace ranklog::test {
namespace {

constexpr std::int64_t kStepsPerEpoch = 22;  // 1438 training images, 4 ranks x 16 a step

TEST_F(Job, TwoNodesOfTwoLearnTheDigitsAndLeaveEveryRanksLog) {
  const std::string port = std::to_string(pick_free_port());
  std::vector<std::unique_ptr<Process>> nodes;
  for (const char* node : {"0", "1"}) {
    nodes.push_back(start({"--nproc_per_node", "2", "--nnodes", "2", "--node_rank", node, "--master_addr",
                           "127.0.0.1", "--master_port", port, "--run_id", "job", "--log_strategy", "node",
                           "--group_name", "my group"}));
  }
  for (const auto& node : nodes) ASSERT_EQ(node->wait(240s), 0) << node->errors();

  double accuracy = 0;
  ASSERT_EQ(std::sscanf(nodes[0]->output().c_str(), "test accuracy %lf", &accuracy), 1) << nodes[0]->output();
  EXPECT_GE(accuracy, 0.95);
  EXPECT_EQ(nodes[1]->output(), "") << "only rank 0 speaks";

  for (int rank = 0; rank < 4; ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const RankFile file = rank_file(rank);
    const Identity& identity = file.info().identity;
    EXPECT_EQ(identity.rank, rank);
    EXPECT_EQ(identity.local_rank, rank % 2);
    EXPECT_EQ(identity.node, rank / 2);
    EXPECT_EQ(identity.world_size, 4);
    EXPECT_EQ(identity.group, "my group");
    EXPECT_EQ(identity.project, "distributed-wandb");
    EXPECT_EQ(identity.experiment, "job");
    EXPECT_EQ(identity.log_strategy, Strategy::kNode);
    EXPECT_EQ(identity.launch_token, rank_file(0).info().identity.launch_token);
    EXPECT_EQ(file.info().end_state, EndState::kFinished);
    EXPECT_EQ(file.info().exit_code, 0);
    EXPECT_EQ(file.info().dropped_rows, 0U);
    EXPECT_EQ(integrity(file.path()), "ok");
    EXPECT_EQ(config_value(file, "rank"), std::to_string(rank));
    EXPECT_EQ(config_value(file, "world_size"), "4");
    EXPECT_EQ(config_value(file, "local_rank"), std::to_string(rank % 2));
    EXPECT_GE(events_of_kind(file, "barrier").size(), 2U);
    EXPECT_FALSE(events_of_kind(file, "checkpoint").empty());
    const auto steps = series(file, "loss").size();
    EXPECT_EQ(steps % kStepsPerEpoch, 0U);
    for (const char* key : {"grad_norm", "lr", "samples_per_second", "step_time", "barrier_wait"}) {
      EXPECT_EQ(series(file, key).size(), steps) << key;
    }
    EXPECT_EQ(series(file, "accuracy").size(), steps / kStepsPerEpoch);
    EXPECT_EQ(series(file, "loss_all_reduced").size(), rank == 0 ? steps : 0U);
  }
}

TEST_F(Job, TheReducedLossIsTheMeanOfTheRanksOwn) {
  const auto job = start({"--nproc_per_node", "3", "--epochs", "1", "--run_id", "job"});
  ASSERT_EQ(job->wait(), 0) << job->errors();
  const auto reduced = series(rank_file(0), "loss_all_reduced");
  std::vector<std::map<std::int64_t, double>> own;
  for (int rank = 0; rank < 3; ++rank) own.push_back(series(rank_file(rank), "loss"));
  ASSERT_FALSE(reduced.empty());
  for (const auto& [step, value] : reduced) {
    EXPECT_NEAR(value, (own[0].at(step) + own[1].at(step) + own[2].at(step)) / 3, 1e-12) << "step " << step;
  }
  EXPECT_NE(own[0].at(0), own[1].at(0)) << "every rank has images of its own";
}

TEST_F(Job, OneProcessNeedsNoLauncher) {
  const auto job = start({"--epochs", "1", "--run_id", "job"});
  ASSERT_EQ(job->wait(), 0) << job->errors();
  EXPECT_EQ(rank_file(0).info().identity.world_size, 1);
  EXPECT_EQ(rank_file(0).info().end_state, EndState::kFinished);
}

TEST_F(Job, RanksWithoutAnyIdAgreeOnOne) {
  const auto job = start({"--nproc_per_node", "2", "--epochs", "1"});
  ASSERT_EQ(job->wait(), 0) << job->errors();
  std::vector<std::filesystem::path> runs;
  for (const auto& run : std::filesystem::directory_iterator(log_dir() / "distributed-wandb"))
    runs.push_back(run);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(runs[0] / "rank-00000.db"));
  EXPECT_TRUE(std::filesystem::exists(runs[0] / "rank-00001.db"));
}

TEST_F(Job, EveryCheckpointIsPublishedWholeAndRecordedAsAnArtifactInPlace) {
  const auto job = start({"--nproc_per_node", "2", "--epochs", "3", "--run_id", "job"});
  ASSERT_EQ(job->wait(), 0) << job->errors();
  const std::vector<Artifact> artifacts = rank_file(0).artifacts();
  ASSERT_EQ(artifacts.size(), 3U);
  EXPECT_TRUE(rank_file(1).artifacts().empty());
  for (std::size_t i = 0; i < artifacts.size(); ++i) {
    const Artifact& artifact = artifacts[i];
    EXPECT_EQ(artifact.name, "job-model");
    EXPECT_EQ(artifact.type, "model");
    ASSERT_FALSE(artifact.aliases.empty());
    EXPECT_EQ(artifact.aliases[0], "epoch-" + std::to_string(i + 1));
    ASSERT_EQ(artifact.files.size(), 1U);
    const ArtifactFile& file = artifact.files[0];
    EXPECT_EQ(file.name, "model.pt");
    const auto path = folder() / file.path;
    EXPECT_EQ(path.parent_path().parent_path(), folder() / "checkpoints") << "it is where it was written";
    const FileDigests digests = digest_file(path);
    EXPECT_EQ(file.size, digests.size);
    EXPECT_EQ(file.md5, digests.md5);
    EXPECT_EQ(file.sha256, digests.sha256);
    const Checkpoint checkpoint = open_checkpoint(path.parent_path());  // compares the manifest's digests
    EXPECT_EQ(checkpoint.manifest.epoch, static_cast<std::int64_t>(i + 1));
    EXPECT_EQ(checkpoint.manifest.world_size, 2);
    EXPECT_TRUE(checkpoint.manifest.ranks_without_durable_log.empty());
    const auto metadata = nlohmann::json::parse(artifact.metadata_json);
    EXPECT_EQ(metadata.at("step"), checkpoint.manifest.step);
    EXPECT_TRUE(metadata.at("accuracy").is_number());
  }
}

TEST_F(Job, RetentionKeepsTheNewestCheckpoints) {
  const auto job = start({"--epochs", "4", "--keep", "2", "--run_id", "job"});
  ASSERT_EQ(job->wait(), 0) << job->errors();
  int folders = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder() / "checkpoints"))
    ++folders;
  EXPECT_EQ(folders, 2);
  EXPECT_EQ(find_newest_checkpoint(folder() / "checkpoints").found->manifest.epoch, 4);
}

TEST_F(Job, TheBatchSizeDecidesTheStepsAndTheIntervalTheCheckpoints) {
  const auto job =
      start({"--epochs", "4", "--checkpoint_interval", "2", "--batch_size", "32", "--run_id", "job"});
  ASSERT_EQ(job->wait(), 0) << job->errors();
  constexpr std::int64_t kSteps = 4 * (1438 / 32);  // whole batches of the 1438 training images
  const auto losses = series(rank_file(0), "loss");
  EXPECT_EQ(losses.size(), static_cast<std::size_t>(kSteps));
  EXPECT_EQ(losses.rbegin()->first, kSteps - 1);
  std::map<std::int64_t, std::int64_t> epoch_by_step;
  for (const std::string& name : list_published_checkpoints(folder() / "checkpoints")) {
    const CheckpointManifest manifest = open_checkpoint(folder() / "checkpoints" / name).manifest;
    epoch_by_step.emplace(manifest.step, manifest.epoch);
  }
  EXPECT_EQ(epoch_by_step, (std::map<std::int64_t, std::int64_t>{{kSteps / 2, 2}, {kSteps, 4}}));
}

TEST_F(Job, BothSpellingsOfAFlagAreAccepted) {
  const auto job = start({"--nproc-per-node", "2", "--epochs", "1", "--run-id", "job", "--group-name", "g",
                          "--log-strategy", "all", "--batch-size", "32", "--checkpoint-interval", "0"});
  ASSERT_EQ(job->wait(), 0) << job->errors();
  EXPECT_EQ(rank_file(1).info().identity.log_strategy, Strategy::kAll);
  EXPECT_FALSE(std::filesystem::exists(folder() / "checkpoints"));
}

TEST_F(Job, ResumedRunsGoOnWhereTheyWereAsOneExperiment) {
  const Arguments arguments{"--nproc_per_node", "2", "--run_id", "job", "--resume", "--epochs"};
  Arguments first = arguments;
  first.emplace_back("2");
  ASSERT_EQ(start(first)->wait(), 0);
  Arguments second = arguments;
  second.emplace_back("4");
  const auto resumed = start(second);
  ASSERT_EQ(resumed->wait(), 0) << resumed->errors();
  EXPECT_NE(resumed->errors().find("resuming at step 88"), std::string::npos) << resumed->errors();
  for (int rank = 0; rank < 2; ++rank) {
    const auto before = series(rank_file(rank), "loss");
    const auto after = series(rank_file(rank, 1), "loss");
    EXPECT_EQ(before.begin()->first, 0);
    EXPECT_EQ(before.rbegin()->first, 87);
    EXPECT_EQ(after.begin()->first, 88);
    EXPECT_EQ(after.rbegin()->first, 175);
    EXPECT_EQ(rank_file(rank, 1).info().identity.resume_step, 88);
  }
  // With its momentum and the order of the images, a resumed run is the one that was never stopped.
  const auto straight = start({"--nproc_per_node", "2", "--run_id", "straight", "--epochs", "4"});
  ASSERT_EQ(straight->wait(), 0) << straight->errors();
  const RankFile uninterrupted =
      RankFile::open(log_dir() / "distributed-wandb" / "straight" / "rank-00001.db");
  const auto wanted = series(uninterrupted, "loss");
  for (const auto& [step, loss] : series(rank_file(1, 1), "loss")) EXPECT_EQ(loss, wanted.at(step)) << step;
}

// With three ranks the order in which gradients are added up depends on how they are laid out.
TEST_F(Job, AResumedRunOfThreeRanksHasTheBitsOfOneThatWasNeverStopped) {
  const auto run = [&](const std::string& id, const std::string& epochs) {
    const auto job =
        start({"--nproc_per_node", "3", "--run_id", id, "--epochs", epochs, "--resume", "--keep", "1"});
    ASSERT_EQ(job->wait(), 0) << job->errors();
  };
  run("job", "1");
  run("job", "2");
  run("straight", "2");
  const auto straight =
      series(RankFile::open(log_dir() / "distributed-wandb" / "straight" / "rank-00002.db"), "grad_norm");
  const auto resumed = series(rank_file(2, 1), "grad_norm");
  ASSERT_EQ(resumed.size(), 29U);  // 1438 training images, 3 ranks x 16 a step
  for (const auto& [step, norm] : resumed) EXPECT_EQ(norm, straight.at(step)) << step;
}

TEST_F(Job, ADamagedCheckpointIsNamedAndTheOneBeforeIsUsed) {
  ASSERT_EQ(start({"--run_id", "job", "--epochs", "2"})->wait(), 0);
  const auto newest = find_newest_checkpoint(folder() / "checkpoints").found->folder / "model.pt";
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) / 2);
  const auto resumed = start({"--run_id", "job", "--epochs", "3", "--resume"});
  ASSERT_EQ(resumed->wait(), 0) << resumed->errors();
  EXPECT_NE(resumed->errors().find(newest.string() + "' has"), std::string::npos) << resumed->errors();
  EXPECT_NE(resumed->errors().find("resuming at step 89 "), std::string::npos) << resumed->errors();
}

TEST_F(Job, ATerminatedJobSavesItsStateAndCanGoOn) {
  const auto job = start({"--nproc_per_node", "2", "--run_id", "job", "--epochs", "10000"});
  ASSERT_TRUE(job->wait_for_error_output("epoch ")) << job->errors();
  job->send(SIGTERM);
  ASSERT_EQ(job->wait(), kExitTemporary) << job->errors();
  EXPECT_NE(job->errors().find("preempted at step"), std::string::npos) << job->errors();
  const auto newest = find_newest_checkpoint(folder() / "checkpoints");
  ASSERT_TRUE(newest.found.has_value());
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(rank_file(rank).info().end_state, EndState::kPreempted);
    EXPECT_EQ(rank_file(rank).info().last_step, newest.found->manifest.step - 1)
        << "saved right where it stopped";
  }
  const std::string epochs = std::to_string(newest.found->manifest.epoch + 1);
  const auto resumed = start({"--nproc_per_node", "2", "--run_id", "job", "--resume", "--epochs", epochs});
  ASSERT_EQ(resumed->wait(), 0) << resumed->errors();
  EXPECT_EQ(series(rank_file(0, 1), "loss").begin()->first, newest.found->manifest.step);
}

TEST_F(Job, AnInterruptedJobEndsItsLogs) {
  const auto job = start({"--nproc_per_node", "2", "--run_id", "job", "--epochs", "10000"});
  ASSERT_TRUE(job->wait_for_error_output("epoch ")) << job->errors();
  job->send(SIGINT);
  EXPECT_EQ(job->wait(), 130) << job->errors();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(rank_file(rank).info().end_state, EndState::kFailed);
    EXPECT_EQ(rank_file(rank).info().exit_code, 130);
  }
}

TEST_F(Job, OneCtrlCToTheWholeProcessGroupEndsEveryLog) {
  const auto job = start_in_own_group({"--nproc_per_node", "4", "--run_id", "job", "--epochs", "10000"});
  ASSERT_TRUE(job->wait_for_error_output("epoch ")) << job->errors();
  ASSERT_EQ(::killpg(job->pid(), SIGINT), 0);
  EXPECT_EQ(job->wait(), 130) << job->errors();
  EXPECT_EQ(job->errors().find("killed"), std::string::npos) << job->errors();
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(rank_file(rank).info().end_state, EndState::kFailed);
    EXPECT_EQ(rank_file(rank).info().exit_code, 130);
  }
}

TEST_F(Job, WithLoggingDisabledItStillTrains) {
  const auto job =
      start({"--nproc_per_node", "2", "--epochs", "1", "--run_id", "job"}, {{"WANDB_MODE", "disabled"}});
  ASSERT_EQ(job->wait(), 0) << job->errors();
  EXPECT_FALSE(std::filesystem::exists(folder() / "rank-00000.db"));
  EXPECT_TRUE(find_newest_checkpoint(folder() / "checkpoints").found.has_value());
}

}  // namespace
}  // namespace ranklog::test
