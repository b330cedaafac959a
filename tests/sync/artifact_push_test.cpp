#include <nlohmann/json.hpp>

#include "push_fixture.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog::sync::test {
namespace {

using nlohmann::json;

class ArtifactPushTest : public PushTest {
 protected:
  ArtifactPushTest() {
    job_.nodes = 2;
    job_.ranks_per_node = 1;
    for (int rank = 0; rank < 2; ++rank) {
      RankFileBuilder file = job_.open(logs_.path(), rank);
      for (int step = 0; step < 4; ++step) {
        file.row(step, {{"loss", step}});
        if (rank == 0 && step % 2 == 1) {
          add_artifact(file, "exp-7-model", "checkpoints/step-" + std::to_string(step) + "/model.pt", step,
                       "weights of step " + std::to_string(step));
        }
      }
      file.finish();
    }
  }
  [[nodiscard]] std::filesystem::path checkpoint(int step) const {
    return job_.folder(logs_.path()) / "checkpoints" / ("step-" + std::to_string(step)) / "model.pt";
  }
  // Refuses this operation, the n-th time it is asked for (from 0).
  static FakeWandb::FaultPlan refuse(std::string operation, int nth, int status) {
    return [operation = std::move(operation), nth, status, seen = 0](
               std::size_t, const HttpRequest& request) mutable -> std::optional<FakeWandb::Fault> {
      if (request_kind(request) != operation || seen++ != nth) return std::nullopt;
      return FakeWandb::Fault{false, false, answer(status, "no")};
    };
  }

  void remove_on_purpose(int step) {
    job_.attempt = 1;
    job_.start_time_ns += 1'000'000'000;
    RankFileBuilder file = job_.open(logs_.path(), 0);
    file.operation(Event{0, 0, std::nullopt, std::string(kCheckpointRemovedEvent),
                         R"({"path":"checkpoints/step-)" + std::to_string(step) + R"("})"});
    file.finish();
    std::filesystem::remove(checkpoint(step));
  }

  Job job_;
};

TEST_F(ArtifactPushTest, EachCheckpointIsOneVersionWhateverTheStrategies) {
  FakeWandb server;
  for (const Strategy strategy : {Strategy::kAll, Strategy::kMain, Strategy::kNode, Strategy::kAll}) {
    EXPECT_EQ(exit_status(push_as(server, strategy)), 0);
  }
  ASSERT_EQ(server.artifacts.size(), 2U);
  for (int i = 0; i < 2; ++i) {
    const FakeWandb::ArtifactVersion& version = server.artifacts[static_cast<std::size_t>(i)];
    const FileDigests local = digest_file(checkpoint(2 * i + 1));
    EXPECT_TRUE(version.committed);
    EXPECT_EQ(md5_hex(version.files.at("model.pt")), local.md5);
    const json manifest = json::parse(version.manifest);
    EXPECT_EQ(manifest["contents"]["model.pt"]["digest"], base64_of_hex(local.md5));
    EXPECT_EQ(manifest["contents"]["model.pt"]["size"], local.size);
    EXPECT_EQ(manifest["contents"]["model.pt"]["birthArtifactID"], version.id);
    EXPECT_EQ(version.run, server.artifacts[0].run);
    EXPECT_NE(version.run.find("-all-r0-"), std::string::npos);
  }
  EXPECT_EQ(server.artifacts[0].aliases, std::vector<std::string>({"step-1"}));
  EXPECT_EQ(server.artifacts[1].aliases, std::vector<std::string>({"latest", "step-3"}));
  // The runs of the other strategies use them.
  for (const auto& [id, run] : server.runs) {
    const bool uses = id.find("-main-r0-") != std::string::npos || id.find("-node-r0-") != std::string::npos;
    EXPECT_EQ(run.used_artifacts.size(), uses ? 2U : 0U) << id;
  }
  EXPECT_EQ(server.faults_of_client, std::vector<std::string>());
}

TEST_F(ArtifactPushTest, FailedArtifactLeavesTheRestDoneAndIsSentAloneNextTime) {
  FakeWandb server;
  server.faults = refuse("CommitArtifact", 1, 400);
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), kExitFailed);
  EXPECT_EQ(run_of(report).outcome, RunOutcome::kPartial);
  EXPECT_EQ(run_of(report).artifacts_sent, 1U);
  EXPECT_EQ(server.runs.begin()->second.history.size(), 4U);
  server.log.clear();
  const PushReport again = push_to(server);
  EXPECT_EQ(exit_status(again), 0) << said(again);
  EXPECT_EQ(server.count("file_stream"), 0U);
  EXPECT_EQ(server.count("UpsertBucket"), 0U);
  EXPECT_EQ(server.count("CreateArtifact"), 1U);
  EXPECT_EQ(server.artifacts.size(), 2U);
  EXPECT_TRUE(server.artifacts[1].committed);
  EXPECT_EQ(server.runs.begin()->second.exit_code, 0);
}

TEST_F(ArtifactPushTest, ChangedCheckpointIsNamedAndTheOthersGoUp) {
  ranklog::test::write_file(checkpoint(1), "other weights 1!!");
  FakeWandb server;
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), kExitFailed);
  EXPECT_NE(fault_of(report).find("model.pt"), std::string::npos) << fault_of(report);
  ASSERT_EQ(server.artifacts.size(), 2U);
  EXPECT_FALSE(server.artifacts[0].committed);
  EXPECT_TRUE(server.artifacts[0].files.empty());
  EXPECT_EQ(server.artifacts[1].aliases, std::vector<std::string>({"latest", "step-3"}));
}

TEST_F(ArtifactPushTest, MissingCheckpointIsNamedAndTheOthersGoUp) {
  std::filesystem::remove(checkpoint(3));
  FakeWandb server;
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), kExitFailed);
  EXPECT_EQ(server.artifacts.size(), 1U);
}

// Retention removes checkpoints, and says so before it does.
TEST_F(ArtifactPushTest, CheckpointThatWasRemovedOnPurposeIsNoFault) {
  remove_on_purpose(1);
  FakeWandb server;
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), 0) << said(report);
  EXPECT_EQ(run_of(report).artifacts_sent, 1U);
  EXPECT_EQ(run_of(report).artifacts_removed, 1U);
  EXPECT_NE(said(report).find("1 removed from disk before"), std::string::npos) << said(report);
  ASSERT_EQ(server.artifacts.size(), 1U);
  EXPECT_EQ(server.artifacts[0].aliases, std::vector<std::string>({"latest", "step-3"}));
}

TEST_F(ArtifactPushTest, CheckpointThatWasRemovedAfterItWasUpIsNoneThatIsMissing) {
  FakeWandb server;
  EXPECT_EQ(exit_status(push_to(server)), 0);
  remove_on_purpose(1);
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), 0) << said(report);
  EXPECT_EQ(run_of(report).artifacts_removed, 0U);
}

// Only the experiment's folder is copied to the machine that has a way out.
TEST_F(ArtifactPushTest, FolderThatWasMovedIsEnough) {
  const ranklog::test::TempDir elsewhere;
  const std::filesystem::path moved = elsewhere / "copied";
  std::filesystem::copy(job_.folder(logs_.path()), moved, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(job_.folder(logs_.path()));
  std::filesystem::rename(moved, logs_ / "moved");
  FakeWandb server;
  EXPECT_EQ(exit_status(push_to(server)), 0);
  EXPECT_EQ(server.artifacts.size(), 2U);
  EXPECT_EQ(server.runs.begin()->second.history.size(), 4U);
}

TEST_F(ArtifactPushTest, TagsGoOnlyToServersThatKnowThem) {
  job_.attempt = 1;
  job_.start_time_ns += 1'000'000'000;
  RankFileBuilder file = job_.open(logs_.path(), 0);
  Artifact tagged;
  tagged.name = "tagged";
  tagged.type = "model";
  tagged.tags = {"good"};
  file.operation(tagged).finish();
  for (const bool knows : {false, true}) {
    FakeWandb server;
    if (knows) server.features = {"ARTIFACT_TAGS"};
    std::vector<bool> seen;
    server.faults = [&](std::size_t, const HttpRequest& request) -> std::optional<FakeWandb::Fault> {
      if (request_kind(request) == "CreateArtifact") {
        seen.push_back(json::parse(request.body)["variables"]["input"].contains("tags"));
      }
      return std::nullopt;
    };
    EXPECT_EQ(exit_status(push_to(server)), 0);
    EXPECT_EQ(seen, std::vector<bool>({false, false, knows}));
    std::filesystem::remove_all(job_.folder(logs_.path()) / ".wandb-sync");
  }
}

// Versions keep their order: one that failed for a while must not come after, and as, the newest.
TEST_F(ArtifactPushTest, LaterVersionsWaitForOneThatFailed) {
  FakeWandb server;
  server.faults = refuse("CommitArtifact", 0, 400);
  EXPECT_EQ(exit_status(push_to(server)), kExitFailed);
  EXPECT_EQ(server.count("CreateArtifact"), 1U);
  EXPECT_EQ(exit_status(push_to(server)), 0);
  ASSERT_EQ(server.artifacts.size(), 2U);
  EXPECT_EQ(server.artifacts[0].aliases, std::vector<std::string>({"step-1"}));
  EXPECT_EQ(server.artifacts[1].aliases, std::vector<std::string>({"latest", "step-3"}));
}

TEST_F(ArtifactPushTest, OlderVersionThatIsMendedLaterIsNotTheLatest) {
  const std::string bytes = ranklog::test::read_file(checkpoint(1));
  std::filesystem::remove(checkpoint(1));
  FakeWandb server;
  EXPECT_EQ(exit_status(push_to(server)), kExitFailed);
  ranklog::test::write_file(checkpoint(1), bytes);
  EXPECT_EQ(exit_status(push_to(server)), 0);
  ASSERT_EQ(server.artifacts.size(), 2U);
  EXPECT_EQ(server.artifacts[0].aliases, std::vector<std::string>({"latest", "step-3"}));
  EXPECT_EQ(server.artifacts[1].aliases, std::vector<std::string>({"step-1"}));
}

TEST_F(ArtifactPushTest, ExpiredUploadAddressIsAskedForAgain) {
  for (int nth = 0; nth < 7; ++nth) {  // run files, artifact files and manifests
    FakeWandb server;
    server.faults = refuse("PUT", nth, 403);
    const PushReport report = push_to(server);
    EXPECT_EQ(exit_status(report), 0) << nth << said(report);
    EXPECT_EQ(server.artifacts.size(), 2U);
    std::filesystem::remove_all(job_.folder(logs_.path()) / ".wandb-sync");
  }
}

TEST_F(ArtifactPushTest, AliasOfContentThatIsUpAlreadyReachesTheServer) {
  FakeWandb server;
  EXPECT_EQ(exit_status(push_to(server)), 0);
  job_.attempt = 1;
  job_.start_time_ns += 1'000'000'000;
  job_.adjust = [](Identity& identity) { identity.resume_step = 4; };
  RankFileBuilder file = job_.open(logs_.path(), 0);
  add_artifact(file, "exp-7-model", "checkpoints/step-3/model.pt", 99, "weights of step 3");
  file.finish();
  EXPECT_EQ(exit_status(push_to(server)), 0);
  ASSERT_EQ(server.artifacts.size(), 2U);
  std::vector<std::string> aliases = server.artifacts[1].aliases;
  std::ranges::sort(aliases);
  EXPECT_EQ(aliases, std::vector<std::string>({"latest", "step-3", "step-99"}));
  server.log.clear();
  EXPECT_EQ(exit_status(push_to(server)), 0);
  EXPECT_TRUE(server.log.empty());
}

// W&B makes no second version of what is there: the second experiment uses that of the first.
TEST_F(ArtifactPushTest, VersionOfAnotherExperimentIsUsedAndNotTakenForOnesOwn) {
  for (const char* experiment : {"exp-8", "exp-9"}) {
    Job job;
    job.nodes = job.ranks_per_node = 1;
    job.experiment = experiment;
    RankFileBuilder file = job.open(logs_.path(), 0);
    file.row(0, {{"loss", 1}});
    add_artifact(file, "shared", "checkpoints/a/model.pt", 1, "the same weights");
    file.finish();
  }
  options_.parallel_runs = 1;
  FakeWandb server;
  EXPECT_EQ(exit_status(push_to(server)), 0);
  ASSERT_EQ(server.artifacts.size(), 3U);
  int makers = 0, users = 0;
  for (const auto& [id, run] : server.runs) {
    if (id.find("exp-7") != std::string::npos) continue;
    makers += server.artifacts[2].run == id ? 1 : 0;
    users += run.used_artifacts == std::vector<std::string>({server.artifacts[2].id}) ? 1 : 0;
  }
  EXPECT_EQ(makers, 1);
  EXPECT_EQ(users, 1);
}

TEST_F(ArtifactPushTest, StorageBelowTheBaseUrlGetsTheKeyWhenItAsks) {
  FakeWandb server;
  server.storage_is_proxied = true;
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), 0) << said(report);
  EXPECT_EQ(server.artifacts.size(), 2U);
  EXPECT_EQ(server.runs.begin()->second.files.size(), 3U);
}

TEST_F(ArtifactPushTest, StorageElsewhereThatAsksForAKeyIsNamedAndGetsNone) {
  FakeWandb server;
  server.faults = [](std::size_t, const HttpRequest& request) -> std::optional<FakeWandb::Fault> {
    if (request.method != "PUT") return std::nullopt;
    for (const auto& [name, value] : request.headers) EXPECT_NE(name, "Authorization");
    return FakeWandb::Fault{false, false, answer(401, "who?")};
  };
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), kExitFailed);
  EXPECT_NE(fault_of(report).find("http://storage"), std::string::npos) << fault_of(report);
  EXPECT_EQ(fault_of(report).find("API key"), std::string::npos) << fault_of(report);
}

TEST_F(ArtifactPushTest, SlowUploadKeepsTheRunAlive) {
  FakeWandb server;
  server.faults = [&](std::size_t, const HttpRequest& request) -> std::optional<FakeWandb::Fault> {
    // Two minutes of waiting on one file.
    for (int second = 0; request.file && second < 120; ++second) {
      clock_.sleep(std::chrono::seconds(1));
      if (request.while_waiting) request.while_waiting();
    }
    return std::nullopt;
  };
  EXPECT_EQ(exit_status(push_to(server)), 0);
  // History, summary, end; and for each of two files about four heartbeats.
  EXPECT_GE(server.count("file_stream"), 3U + 2 * 3);
  EXPECT_LE(server.count("file_stream"), 3U + 2 * 5);
  EXPECT_EQ(server.runs.begin()->second.exit_code, 0);
}

}  // namespace
}  // namespace ranklog::sync::test
