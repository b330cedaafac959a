#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "push_fixture.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog::sync::test {
namespace {

using nlohmann::json;

json config_of(const FakeWandb::Run& run) {
  return json::parse(run.variables["config"].get<std::string>());
}

TEST_F(PushTest, ThreeStrategiesMakeOneTwoAndEightRunsWithTheirRows) {
  Job().write(logs_.path(), 3);
  const struct {
    Strategy strategy;
    std::vector<int> ranks;
  } kTable[] = {
      {Strategy::kMain, {0}}, {Strategy::kNode, {0, 4}}, {Strategy::kAll, {0, 1, 2, 3, 4, 5, 6, 7}}};
  for (const auto& row : kTable) {
    FakeWandb server;
    const PushReport report = push_as(server, row.strategy);
    EXPECT_EQ(exit_status(report), 0) << said(report);
    ASSERT_EQ(server.runs.size(), row.ranks.size());
    for (const auto& [id, run] : server.runs) {
      const json config = config_of(run);
      const int rank = config["rank"]["value"];
      EXPECT_TRUE(std::ranges::count(row.ranks, rank));
      EXPECT_EQ(config["world_size"]["value"], 8);
      EXPECT_EQ(config["local_rank"]["value"], rank % 4);
      EXPECT_EQ(config["lr"]["value"], 0.001);
      EXPECT_EQ(run.variables["groupName"], "exp-7");
      EXPECT_EQ(run.variables["displayName"],
                row.strategy == Strategy::kMain ? "exp-7" : "rank-" + std::to_string(rank));
      EXPECT_EQ(run.exit_code, 0);
      ASSERT_EQ(run.history.size(), 3U);
      for (int step = 0; step < 3; ++step) {
        const json line = json::parse(run.history[static_cast<std::size_t>(step)]);
        EXPECT_EQ(line["_step"], step);
        EXPECT_EQ(line["loss"], rank + step / 1024.0);
      }
    }
    EXPECT_EQ(server.faults_of_client, std::vector<std::string>());
  }
}

TEST_F(PushTest, ConfigHasWhatResumingAndReadersNeed) {
  Job job;
  job.adjust = [](Identity& identity) {
    identity.git_commit = "c0ffee";
    identity.program = "train.py";
  };
  job.write(logs_.path(), 2);
  FakeWandb server;
  (void)push_as(server, Strategy::kNode);
  const FakeWandb::Run& run = server.runs.begin()->second;
  const json config = config_of(run);
  EXPECT_FALSE(config["_wandb"]["value"]["t"].empty());
  EXPECT_TRUE(config["_wandb"]["value"]["m"].is_array());
  const json environment = config["_wandb"]["value"]["e"].begin().value();
  EXPECT_EQ(environment["startedAt"], "2023-11-14T22:13:20.000000Z");
  EXPECT_EQ(environment["host"], "host-0");
  const json ours = config["_ranklog"]["value"];
  EXPECT_EQ(ours["recipe"]["strategy"], "node");
  EXPECT_EQ(ours["state"], "finished");
  EXPECT_EQ(ours["ranks"], json({0, 1, 2, 3}));
  EXPECT_EQ(ours["attempts"].size(), 1U);
  EXPECT_EQ(run.variables["commit"], "c0ffee");
  EXPECT_EQ(json::parse(run.files.at("wandb-metadata.json")), environment);
  EXPECT_EQ(run.files.at("wandb-summary.json"), run.summary);
  EXPECT_NE(run.files.at("config.yaml").find("world_size:\n    value: 8\n"), std::string::npos);
  EXPECT_EQ(run.uploaded,
            std::vector<std::string>({"config.yaml", "wandb-metadata.json", "wandb-summary.json"}));
}

TEST_F(PushTest, UsersOwnRankInTheConfigIsKeptBeside) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  RankFileBuilder file = job.open(logs_.path(), 0);
  file.operation(ConfigEntry{"rank", "8"}).row(0, {{"loss", 1}});
  file.finish();
  FakeWandb server;
  (void)push_to(server);
  const json config = config_of(server.runs.begin()->second);
  EXPECT_EQ(config["rank"]["value"], 0);
  EXPECT_EQ(config["_ranklog"]["value"]["displaced_config"]["rank"], 8);
}

TEST_F(PushTest, SecondPushOfAFinishedFolderAsksNothing) {
  Job().write(logs_.path(), 3);
  FakeWandb server;
  (void)push_as(server, Strategy::kNode);
  const std::string state = server.state();
  server.log.clear();
  const PushReport again = push_as(server, Strategy::kNode);
  EXPECT_TRUE(server.log.empty());
  EXPECT_EQ(run_of(again).outcome, RunOutcome::kUpToDate);
  EXPECT_NE(said(again).find("skipped 2"), std::string::npos) << said(again);
  EXPECT_EQ(server.state(), state);
  // Nor are credentials needed for it.
  key_.clear();
  EXPECT_EQ(exit_status(push_as(server, Strategy::kNode)), 0);
}

TEST_F(PushTest, NoSkipSyncedAsksAndStillSendsNothing) {
  Job().write(logs_.path(), 3);
  FakeWandb server;
  (void)push_to(server);
  const std::string state = server.state();
  server.log.clear();
  options_.skip_synced = false;
  EXPECT_EQ(exit_status(push_to(server)), 0);
  EXPECT_EQ(server.log, std::vector<std::string>({"Viewer", "ServerFeaturesQuery", "RunResumeStatus"}));
  EXPECT_EQ(server.state(), state);
}

TEST_F(PushTest, OnlyNewRowsAreSent) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  RankFileBuilder file = job.open(logs_.path(), 0);
  for (int step = 0; step < 50; ++step) file.row(step, {{"loss", step}});
  FakeWandb server;
  (void)push_to(server);
  EXPECT_EQ(server.rows_received, 50U);
  for (int step = 50; step < 60; ++step) file.row(step, {{"loss", step}});
  file.finish();
  const PushReport report = push_to(server);
  EXPECT_EQ(server.rows_received, 60U);
  EXPECT_EQ(run_of(report).lines_sent, 10U);
  EXPECT_EQ(server.runs.begin()->second.history.size(), 60U);
  EXPECT_EQ(server.runs.begin()->second.exit_code, 0);
}

TEST_F(PushTest, EndStatesAreToldAsTheServerKnowsThem) {
  const struct {
    std::optional<EndState> state;
    std::optional<int> exit_code;
    std::optional<int> want;
    bool preempting;
  } kTable[] = {
      {EndState::kFinished, 0, 0, false},          {EndState::kFailed, 7, 7, false},
      {EndState::kFailed, std::nullopt, 1, false}, {EndState::kPreempted, 75, 75, true},
      {EndState::kPreempted, 0, 1, true},          {std::nullopt, std::nullopt, std::nullopt, false}};
  for (const auto& row : kTable) {
    const ranklog::test::TempDir logs;
    Job job;
    job.nodes = job.ranks_per_node = 1;
    job.experiment = "e" + std::to_string(&row - kTable);
    {
      RankFileBuilder file = job.open(logs_.path(), 0);
      file.row(0, {{"loss", 1}});
      if (row.state) file.finish(*row.state, row.exit_code);
    }
    FakeWandb server;
    const PushReport report = push_to(server);
    const FakeWandb::Run& run = server.runs.rbegin()->second;
    EXPECT_EQ(run.exit_code, row.want) << job.experiment;
    EXPECT_EQ(run.preempting, row.preempting) << job.experiment;
    EXPECT_EQ(exit_status(report), 0) << said(report);
    std::filesystem::remove_all(job.folder(logs_.path()));
  }
}

// A process that logged and died without a word: all of it goes up, and the run is not called complete.
TEST_F(PushTest, CrashedRunGoesUpWholeAndIsNotCalledComplete) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  {
    RankFileBuilder file = job.open(logs_.path(), 0);
    file.operation(ConfigEntry{"lr", "0.5"});
    for (int step = 0; step < 10; ++step) file.row(step, {{"loss", 1.0 / (step + 1)}});
  }
  FakeWandb server;
  const PushReport report = push_to(server);
  const FakeWandb::Run& run = server.runs.begin()->second;
  EXPECT_EQ(run.history.size(), 10U);
  EXPECT_EQ(run.exit_code, std::nullopt);
  EXPECT_EQ(json::parse(run.summary)["loss"], 0.1);
  EXPECT_EQ(config_of(run)["lr"]["value"], 0.5);
  EXPECT_EQ(config_of(run)["_ranklog"]["value"]["state"], "crashed");
  EXPECT_EQ(run_of(report).state, RunState::kCrashed);
  EXPECT_EQ(exit_status(report), 0) << said(report);
}

TEST_F(PushTest, NaNAndInfinitiesArriveAsTokensAndStopNobody) {
  for (int i = 0; i < 3; ++i) {
    Job job;
    job.nodes = job.ranks_per_node = 1;
    job.experiment = "e" + std::to_string(i);
    RankFileBuilder file = job.open(logs_.path(), 0);
    const double inf = std::numeric_limits<double>::infinity();
    if (i == 1) file.row(0, {{"a", std::nan("")}, {"b", inf}, {"c", -inf}});
    if (i != 1) file.row(0, {{"a", 1.0}});
    file.operation(ConfigEntry{"limit", "Infinity"});
    file.finish();
  }
  FakeWandb server;
  EXPECT_EQ(exit_status(push_to(server)), 0);
  ASSERT_EQ(server.runs.size(), 3U);
  const FakeWandb::Run& middle = std::next(server.runs.begin())->second;
  EXPECT_NE(middle.history.at(0).find(R"("a":NaN,"b":Infinity,"c":-Infinity)"), std::string::npos);
  EXPECT_NE(middle.summary.find("\"a\":NaN"), std::string::npos);
}

TEST_F(PushTest, NothingToUploadYetIsNoFault) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  const RankFileBuilder file = job.open(logs_.path(), 0);
  FakeWandb server;
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), 0);
  EXPECT_NE(said(report).find("nothing to upload yet"), std::string::npos);
  EXPECT_TRUE(server.log.empty());
}

TEST_F(PushTest, ForbiddenRunNamesEntityProjectAndUserAndStaysUnsynced) {
  Job().write(logs_.path(), 1);
  FakeWandb server;
  server.faults = [](std::size_t, const HttpRequest& request) -> std::optional<FakeWandb::Fault> {
    if (request_kind(request) != "UpsertBucket") return std::nullopt;
    return FakeWandb::Fault{false, false, answer(403, R"({"errors":[{"message":"permission denied"}]})")};
  };
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), kExitUnauthorized);
  for (const char* name : {"acme", "distributed-wandb", "jane"}) {
    EXPECT_NE(fault_of(report).find(name), std::string::npos) << fault_of(report);
  }
  EXPECT_EQ(said(report).find("done"), std::string::npos);
  EXPECT_NE(said(report).find("0 runs uploaded, 1 FAILED"), std::string::npos) << said(report);
  EXPECT_NE(run_of(push_to(server)).outcome, RunOutcome::kUpToDate);
}

TEST_F(PushTest, WrongKeyIsSaidOnceAndClearly) {
  Job().write(logs_.path(), 1);
  FakeWandb server;
  server.api_key = "another";
  try {
    (void)push_to(server);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnauthorized);
    EXPECT_NE(std::string(error.what()).find("WANDB_API_KEY"), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find(key_), std::string::npos);
  }
}

TEST_F(PushTest, MissingKeyIsAnError) {
  Job().write(logs_.path(), 1);
  FakeWandb server;
  key_.clear();
  EXPECT_THROW((void)push_to(server), Error);
  EXPECT_TRUE(server.log.empty());
}

TEST_F(PushTest, DamagedRankFileLeavesAPartialUpload) {
  const Job job;
  job.write(logs_.path(), 2);
  std::filesystem::resize_file(job.folder(logs_.path()) / "rank-00002.db", 100);
  FakeWandb server;
  const PushReport report = push_as(server, Strategy::kAll);
  EXPECT_EQ(server.runs.size(), 7U);
  EXPECT_EQ(exit_status(report), kExitFailed);
  EXPECT_NE(said(report).find("rank-00002.db"), std::string::npos);
}

TEST_F(PushTest, ServerThatIsGoneIsAPassingFault) {
  Job().write(logs_.path(), 2);
  FakeWandb server;
  bool up = true;
  server.faults = [&](std::size_t, const HttpRequest& request) -> std::optional<FakeWandb::Fault> {
    if (request_kind(request) == "file_stream") up = false;
    if (up) return std::nullopt;
    return FakeWandb::Fault{false, false, no_answer(Delivery::kNotSent)};
  };
  options_.patience = std::chrono::seconds(60);
  const PushReport report = push_as(server, Strategy::kAll);
  EXPECT_EQ(exit_status(report), kExitTemporary) << said(report);
  EXPECT_LE(clock_.slept(), std::chrono::seconds(61));
}

TEST_F(PushTest, StopSavesWhatWasConfirmed) {
  Job().write(logs_.path(), 2);
  options_.parallel_runs = 1;
  FakeWandb server;
  server.faults = [&](std::size_t, const HttpRequest& request) -> std::optional<FakeWandb::Fault> {
    if (request_kind(request) == "file_stream") stop_.raise(SIGINT);
    return std::nullopt;
  };
  const PushReport report = push_as(server, Strategy::kAll);
  EXPECT_EQ(exit_status(report), 130);
  EXPECT_EQ(server.count("file_stream"), 1U);
  EXPECT_EQ(run_of(report, 7).outcome, RunOutcome::kFailed);
}

TEST_F(PushTest, OneRunsFaultDoesNotStopTheOthers) {
  Job().write(logs_.path(), 2);
  FakeWandb server;
  server.faults = [](std::size_t, const HttpRequest& request) -> std::optional<FakeWandb::Fault> {
    const bool of_rank_3 = request.url.find("-all-r3-") != std::string::npos;
    if (!of_rank_3) return std::nullopt;
    return FakeWandb::Fault{false, false, answer(400, "bad")};
  };
  const PushReport report = push_as(server, Strategy::kAll);
  EXPECT_EQ(exit_status(report), kExitFailed);
  int uploaded = 0;
  for (const RunReport& run : report.experiments.at(0).runs)
    uploaded += run.outcome == RunOutcome::kUploaded ? 1 : 0;
  EXPECT_EQ(uploaded, 7);
}

TEST_F(PushTest, RunOfSomebodyElseIsNotOverwritten) {
  Job().write(logs_.path(), 2);
  FakeWandb server;
  PlanOptions plan_options;
  plan_options.run_id = "taken";
  server.runs["taken"].variables = {{"config", R"({"lr":{"value":NaN}})"}};
  server.runs["taken"].history = {"{\"_step\":0}"};
  const PushReport report = push_to(server, plan_options);
  EXPECT_EQ(exit_status(report), kExitFailed);
  EXPECT_NE(fault_of(report).find("--id"), std::string::npos);
  EXPECT_EQ(server.runs["taken"].history.size(), 1U);
}

TEST_F(PushTest, AnotherRecipeForTheSameRunIsRefused) {
  Job().write(logs_.path(), 2);
  FakeWandb server;
  PlanOptions plan_options;
  plan_options.run_id = "mine";
  (void)push_to(server, plan_options);
  plan_options.main_rank = 3;
  const PushReport report = push_to(server, plan_options);
  EXPECT_EQ(exit_status(report), kExitUsage) << said(report);
  EXPECT_NE(fault_of(report).find("\"rank\":0"), std::string::npos) << fault_of(report);
}

TEST_F(PushTest, FilesThatNoLongerBeginWithWhatWasUploadedStopTheRun) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  {
    RankFileBuilder file = job.open(logs_.path(), 0);
    for (int step = 0; step < 10; ++step) file.row(step, {{"loss", step}});
  }
  FakeWandb server;
  (void)push_to(server);
  const std::string state = server.state();
  job.attempt = 1;
  job.start_time_ns += 3'600'000'000'000;
  job.adjust = [](Identity& identity) { identity.resume_step = 5; };
  RankFileBuilder second = job.open(logs_.path(), 0);
  second.row(5, {{"loss", 100}});
  second.finish();
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), kExitFailed);
  EXPECT_NE(fault_of(report).find("history lines 0 to 9 differ"), std::string::npos) << fault_of(report);
  EXPECT_EQ(server.state(), state);
}

// Crashed at 10, uploaded, continued from the checkpoint at 5: what is up is no longer what the files say.
TEST_F(PushTest, NewGenerationTakesUpWhatConflictsWithWhatWasUploaded) {
  Job job;
  job.nodes = 1;
  job.ranks_per_node = 2;
  for (int rank = 0; rank < 2; ++rank) {
    RankFileBuilder file = job.open(logs_.path(), rank);
    for (int step = 0; step < 10; ++step) file.row(step, {{"loss", step}});
    if (rank == 1) file.finish();
  }
  FakeWandb server;
  EXPECT_EQ(exit_status(push_as(server, Strategy::kAll)), 0);
  job.attempt = 1;
  job.start_time_ns += 3'600'000'000'000;
  job.adjust = [](Identity& identity) { identity.resume_step = 5; };
  for (int rank = 0; rank < 2; ++rank) {
    RankFileBuilder file = job.open(logs_.path(), rank);
    for (int step = 5; step < 8; ++step) file.row(step, {{"loss", 100}});
    file.finish();
  }
  const PushReport refused = push_as(server, Strategy::kAll);
  EXPECT_EQ(exit_status(refused), kExitFailed);
  EXPECT_NE(fault_of(refused).find("--new-generation"), std::string::npos) << fault_of(refused);
  options_.new_generation = true;
  const PushReport report = push_as(server, Strategy::kAll);
  EXPECT_EQ(exit_status(report), 0) << said(report);
  ASSERT_EQ(server.runs.size(), 4U);
  for (const auto& [id, run] : server.runs) {
    const bool is_new = id.ends_with("-g2");
    EXPECT_EQ(run.history.size(), is_new ? 8U : 10U) << id;
    EXPECT_EQ(run.variables["tags"], is_new ? json(nullptr) : json({"superseded"})) << id;
  }
  // From now on the new ones are the runs, whether the flag is given or not.
  server.log.clear();
  for (const bool flag : {false, true}) {
    options_.new_generation = flag;
    const PushReport again = push_as(server, Strategy::kAll);
    EXPECT_EQ(run_of(again).outcome, RunOutcome::kUpToDate);
    EXPECT_TRUE(run_of(again).url.ends_with("-g2")) << run_of(again).url;
  }
  EXPECT_TRUE(server.log.empty());
  // And they are found again when the state is lost.
  std::filesystem::remove_all(job.folder(logs_.path()) / ".wandb-sync");
  const PushReport found = push_as(server, Strategy::kAll);
  EXPECT_EQ(exit_status(found), 0) << said(found);
  EXPECT_EQ(server.runs.size(), 4U);
}

TEST_F(PushTest, MissingRanksAreReported) {
  const Job job;
  job.write(logs_.path(), 2);
  std::filesystem::remove(job.folder(logs_.path()) / "rank-00003.db");
  FakeWandb server;
  const PushReport main = push_as(server, Strategy::kMain);
  EXPECT_EQ(exit_status(main), 0);
  EXPECT_NE(said(main).find("no file of rank 3 (world size 8)"), std::string::npos) << said(main);
  EXPECT_EQ(json::parse(report_json(main))["experiments"][0]["missing_ranks"], json({3}));
  const PushReport all = push_as(server, Strategy::kAll);
  EXPECT_EQ(exit_status(all), kExitFailed);
  EXPECT_NE(said(all).find("7 runs uploaded, PARTIAL: 1 problem"), std::string::npos) << said(all);
}

TEST_F(PushTest, CheckedRunsAreNotCalledUploaded) {
  Job().write(logs_.path(), 2);
  FakeWandb server;
  (void)push_to(server);
  options_.skip_synced = false;
  const PushReport report = push_to(server);
  EXPECT_EQ(run_of(report).outcome, RunOutcome::kUpToDate);
  EXPECT_NE(said(report).find("0 runs uploaded, 1 checked and up to date\n"), std::string::npos)
      << said(report);
}

// Whatever the order in which folders and files are named: the same bytes.
TEST_F(PushTest, OrderOfTheInputsChangesNothing) {
  const Job job;
  job.write(logs_.path(), 3);
  for (int rank = 0; rank < 8; ++rank) {
    inputs_.push_back(job.folder(logs_.path()) / ("rank-0000" + std::to_string(rank) + ".db"));
  }
  std::set<std::string> states;
  for (int permutation = 0; permutation < 3; ++permutation) {
    FakeWandb server;
    EXPECT_EQ(exit_status(push_as(server, Strategy::kAll)), 0);
    states.insert(server.state());
    std::filesystem::remove_all(job.folder(logs_.path()) / ".wandb-sync");
    std::ranges::rotate(inputs_, inputs_.begin() + 3);
    if (permutation == 1) std::ranges::reverse(inputs_);
  }
  EXPECT_EQ(states.size(), 1U);
}

TEST_F(PushTest, ContinuationOfAPreemptedRunGoesOnAndEndsAgain) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  RankFileBuilder first = job.open(logs_.path(), 0);
  first.row(0, {{"loss", 1}}).row(1, {{"loss", 2}});
  first.finish(EndState::kPreempted, 75);
  FakeWandb server;
  (void)push_to(server);
  job.attempt = 1;
  job.start_time_ns += 3'600'000'000'000;
  job.adjust = [](Identity& identity) { identity.resume_step = 2; };
  RankFileBuilder second = job.open(logs_.path(), 0);
  second.row(2, {{"loss", 3}});
  second.finish();
  EXPECT_EQ(exit_status(push_to(server)), 0);
  const FakeWandb::Run& run = server.runs.begin()->second;
  EXPECT_EQ(run.history.size(), 3U);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(server.rows_received, 3U);
}

TEST_F(PushTest, LostStateIsRebuiltFromTheServer) {
  const Job job;
  job.write(logs_.path(), 5);
  FakeWandb server;
  (void)push_to(server);
  const std::string state = server.state();
  std::filesystem::remove_all(job.folder(logs_.path()) / ".wandb-sync");
  EXPECT_EQ(exit_status(push_to(server)), 0);
  EXPECT_EQ(server.rows_received, 5U);
  EXPECT_EQ(server.state(), state);
  server.log.clear();
  (void)push_to(server);
  EXPECT_TRUE(server.log.empty());
}

// One job in two pieces, as two allocations leave them, each in a folder of its own.
class PiecesTest : public PushTest {
 protected:
  PiecesTest() {
    for (int piece = 0; piece < 2; ++piece) {
      Job job;
      job.nodes = job.ranks_per_node = 1;
      job.attempt = piece;
      job.start_time_ns += piece * 3'600'000'000'000;
      if (piece > 0) job.adjust = [](Identity& identity) { identity.resume_step = 5; };
      const std::filesystem::path logs = logs_ / ("piece-" + std::to_string(piece));
      RankFileBuilder file = job.open(logs, 0);
      for (int step = 5 * piece; step < 5 * piece + 5; ++step) file.row(step, {{"loss", step}});
      file.finish();
      pieces_.push_back(job.folder(logs));
    }
  }
  [[nodiscard]] static std::vector<int> steps_of(const FakeWandb& server) {
    std::vector<int> steps;
    for (const std::string& line : server.runs.begin()->second.history) {
      steps.push_back(json::parse(line)["_step"]);
    }
    return steps;
  }

  std::vector<std::filesystem::path> pieces_;
};

TEST_F(PiecesTest, LinesOfOtherStepsAtTheServerAreNotTakenForOnesOwn) {
  for (const bool keep_state : {true, false}) {
    FakeWandb server;
    inputs_ = {pieces_[1]};
    EXPECT_EQ(exit_status(push_to(server)), 0);
    if (!keep_state) std::filesystem::remove_all(pieces_[1] / ".wandb-sync");
    inputs_ = pieces_;
    const PushReport report = push_to(server);
    EXPECT_EQ(exit_status(report), kExitFailed) << said(report);
    EXPECT_NE(fault_of(report).find("no longer begin with what was uploaded"), std::string::npos)
        << fault_of(report);
    EXPECT_NE(fault_of(report).find("--new-generation"), std::string::npos) << fault_of(report);
    EXPECT_EQ(steps_of(server), std::vector<int>({5, 6, 7, 8, 9}));
    for (const auto& piece : pieces_) std::filesystem::remove_all(piece / ".wandb-sync");
  }
}

TEST_F(PiecesTest, StateIsFoundInWhicheverPieceItLies) {
  FakeWandb server;
  std::filesystem::create_directories(pieces_[1]);
  inputs_ = pieces_;
  EXPECT_EQ(exit_status(push_to(server)), 0);
  std::filesystem::rename(pieces_[0] / ".wandb-sync", pieces_[1] / ".wandb-sync");
  server.log.clear();
  EXPECT_EQ(run_of(push_to(server)).outcome, RunOutcome::kUpToDate);
  EXPECT_TRUE(server.log.empty());
  EXPECT_FALSE(std::filesystem::exists(pieces_[0] / ".wandb-sync"));
}

TEST_F(PiecesTest, PieceByPieceFromTheFirstOnIsOneRun) {
  FakeWandb server;
  inputs_ = {pieces_[0]};
  EXPECT_EQ(exit_status(push_to(server)), 0);
  inputs_ = pieces_;
  EXPECT_EQ(exit_status(push_to(server)), 0);
  EXPECT_EQ(steps_of(server), std::vector<int>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(server.rows_received, 10U);
}

// The server has lines that nobody vouches for: by their number alone they are not ours.
TEST_F(PushTest, LostStateWithoutProofOfTheLinesIsRefused) {
  const Job job;
  job.write(logs_.path(), 5);
  FakeWandb server;
  (void)push_to(server);
  FakeWandb::Run& run = server.runs.begin()->second;
  json config = config_of(run);
  config["_ranklog"]["value"].erase("history");
  run.variables["config"] = config.dump();
  std::filesystem::remove_all(job.folder(logs_.path()) / ".wandb-sync");
  EXPECT_EQ(exit_status(push_to(server)), kExitFailed);
  EXPECT_EQ(server.rows_received, 5U);
}

TEST_F(PushTest, LostStateAndOneMoreLineAtTheServerIsRefused) {
  const Job job;
  job.write(logs_.path(), 5);
  FakeWandb server;
  (void)push_to(server);
  server.runs.begin()->second.history.resize(3);
  server.runs.begin()->second.history.push_back("{}");
  server.runs.begin()->second.history.resize(6, "{}");
  std::filesystem::remove_all(job.folder(logs_.path()) / ".wandb-sync");
  EXPECT_EQ(exit_status(push_to(server)), kExitFailed);
}

TEST_F(PushTest, RunRenamedAtTheServerKeepsItsNameWhenTheConfigChanges) {
  Job job;
  job.nodes = job.ranks_per_node = 1;
  RankFileBuilder file = job.open(logs_.path(), 0);
  file.row(0, {{"loss", 0}}).row(1, {{"loss", 1}});
  FakeWandb server;
  (void)push_to(server);
  FakeWandb::Run& run = server.runs.begin()->second;
  for (const bool keep_state : {true, false}) {
    run.variables["displayName"] = "the good one";
    run.variables["notes"] = "see page 3";
    file.operation(ConfigEntry{"late", keep_state ? "1" : "2"}).row(keep_state ? 2 : 3, {{"loss", 2}});
    if (!keep_state) std::filesystem::remove_all(job.folder(logs_.path()) / ".wandb-sync");
    EXPECT_EQ(exit_status(push_to(server)), 0);
    EXPECT_EQ(config_of(run)["late"]["value"], keep_state ? 1 : 2);
    EXPECT_EQ(run.variables["displayName"], "the good one");
    EXPECT_EQ(run.variables["notes"], "see page 3");
  }
}

TEST_F(PushTest, TwoExperimentsThatWouldBeOneRunAreRefusedBeforeAnythingIsSent) {
  for (const char* experiment : {"exp-7", "exp-8"}) {
    Job job;
    job.experiment = experiment;
    job.nodes = job.ranks_per_node = 1;
    job.adjust = [](Identity& identity) { identity.wandb_run_id = "same"; };
    job.write(logs_.path(), 3);
  }
  FakeWandb server;
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), kExitUsage);
  EXPECT_TRUE(server.log.empty());
  for (const char* part : {"exp-7", "exp-8", "same", "--id"}) {
    EXPECT_NE(said(report).find(part), std::string::npos) << said(report);
  }
}

TEST_F(PushTest, StateFolderCanLieElsewhere) {
  const ranklog::test::TempDir state;
  const Job job;
  job.write(logs_.path(), 2);
  options_.state_dir = state.path();
  FakeWandb server;
  (void)push_to(server);
  EXPECT_FALSE(std::filesystem::exists(job.folder(logs_.path()) / ".wandb-sync"));
  server.log.clear();
  EXPECT_EQ(run_of(push_to(server)).outcome, RunOutcome::kUpToDate);
  EXPECT_TRUE(server.log.empty());
}

TEST_F(PushTest, KeyStandsInNoFile) {
  const Job job;
  job.write(logs_.path(), 2);
  FakeWandb server;
  (void)push_as(server, Strategy::kAll);
  const std::string encoded = base64("api:" + key_);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(logs_.path())) {
    if (!entry.is_regular_file()) continue;
    const std::string bytes = ranklog::test::read_file(entry.path());
    EXPECT_EQ(bytes.find(key_), std::string::npos) << entry.path();
    EXPECT_EQ(bytes.find(encoded), std::string::npos) << entry.path();
  }
  EXPECT_EQ(server.state().find(key_), std::string::npos);
}

}  // namespace
}  // namespace ranklog::sync::test
