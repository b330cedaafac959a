#include <pty.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <map>

#include "experiments.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/writer/writer.hpp"
#include "rehearsal.hpp"

namespace ranklog::sync::test {
namespace {

using nlohmann::json;

// Of the test's own process, for the writer.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

// Two nodes of two ranks, written by the real writer, with two checkpoints by rank 0.
class SyncTest : public RehearsalTest {
 protected:
  static constexpr int kSteps = 20;

  [[nodiscard]] Options options_of(int rank, const std::string& experiment = "job-1") const {
    Options options;
    options.console = false;
    options.system_metrics_interval = std::chrono::milliseconds(0);
    options.log_dir = logs();
    options.project = "distributed-wandb";
    options.experiment = experiment;
    options.group = "my-experiment";
    options.rank = rank;
    options.local_rank = rank % 2;
    options.world_size = 4;
    options.local_world_size = 2;
    options.node = rank / 2;
    return options;
  }
  void write_job(const std::string& experiment = "job-1") const {
    for (int rank = 0; rank < 4; ++rank) {
      Writer log = Writer::open(options_of(rank, experiment));
      log.config({{"learning_rate", 1e-3}});
      for (int step = 0; step < kSteps; ++step) {
        log.log(step, {{"loss", rank + 1.0 / (step + 1)}});
        if (rank == 0 && step % 10 == 9) checkpoint(log, step);
      }
      (void)log.finish();
    }
  }
  static void checkpoint(Writer& log, int step) {
    const auto path = log.folder() / "checkpoints" / ("step-" + std::to_string(step)) / "model.pt";
    std::filesystem::create_directories(path.parent_path());
    ranklog::test::write_file(path, "weights " + std::to_string(step));
    log.artifact("job-1-model", "model").add_file(path, "model.pt").step(step).commit();
  }
  [[nodiscard]] std::filesystem::path folder() const { return dir_ / "logs/distributed-wandb/job-1"; }

  void expect_rows_once(const std::string& run_id, int rank) {
    const auto lines = history(run_id);
    ASSERT_EQ(lines.size(), static_cast<std::size_t>(kSteps)) << run_id;
    for (int step = 0; step < kSteps; ++step) {
      const json row = json::parse(lines[static_cast<std::size_t>(step)]);
      EXPECT_EQ(row["_step"], step);
      EXPECT_EQ(row["loss"], rank + 1.0 / (step + 1));
    }
  }
};

TEST_F(SyncTest, StrategiesMakeOneTwoAndFourRunsAndEachCheckpointOnce) {
  write_job();
  serve();
  std::size_t runs_before = 0;
  for (const auto& [strategy, ranks] : std::vector<std::pair<std::string, std::vector<int>>>{
           {"main", {0}}, {"node", {0, 2}}, {"all", {0, 1, 2, 3}}}) {
    ASSERT_EQ(sync({logs(), "--strategy", strategy}), 0) << errors_ << output_;
    const json found = runs();
    EXPECT_EQ(found.size(), runs_before + ranks.size());
    runs_before = found.size();
    for (const int rank : ranks) {
      const std::string id = "job-1-" + strategy + "-r" + std::to_string(rank) + "-" +
                             sha256_hex("distributed-wandb/job-1").substr(0, 8);
      ASSERT_TRUE(found.contains(id)) << found.dump(1);
      const json& run = found[id];
      EXPECT_EQ(run["name"], strategy == "main" ? "job-1" : "rank-" + std::to_string(rank));
      EXPECT_EQ(run["group"], "my-experiment");
      EXPECT_EQ(run["state"], "finished");
      EXPECT_EQ(run["config"]["world_size"], 4);
      EXPECT_EQ(run["config"]["rank"], rank);
      EXPECT_EQ(run["config"]["local_rank"], rank % 2);
      EXPECT_EQ(run["config"]["learning_rate"], 1e-3);
      EXPECT_EQ(run["summary"]["_step"], kSteps - 1);
      EXPECT_EQ(run["anomalies"], json::array());
      EXPECT_NE(output_.find(id), std::string::npos);
      expect_rows_once(id, rank);
    }
  }
  const json versions = artifacts();
  ASSERT_EQ(versions.size(), 2U);
  for (int i = 0; i < 2; ++i) {
    const auto local =
        digest_file(folder() / ("checkpoints/step-" + std::to_string(10 * i + 9)) / "model.pt");
    const json& version = versions[static_cast<std::size_t>(i)];
    EXPECT_EQ(version["version"], "v" + std::to_string(i));
    EXPECT_EQ(version["state"], "COMMITTED");
    EXPECT_EQ(version["type"], "model");
    EXPECT_EQ(version["files"][0]["digest"], base64_of_hex(local.md5));
  }
  EXPECT_EQ(versions[1]["aliases"], json({"latest"}));
}

TEST_F(SyncTest, SecondSyncNeedsNeitherServerNorKey) {
  write_job();
  serve();
  ASSERT_EQ(sync({logs(), "--strategy", "node"}), 0) << errors_;
  stop_serving();
  EXPECT_EQ(sync({logs(), "--strategy", "node"}, {{"WANDB_API_KEY", ""}}), 0) << errors_;
  EXPECT_NE(output_.find("skipped 2"), std::string::npos) << output_;
}

TEST_F(SyncTest, PlanNeedsNoServerAndSendsNothing) {
  write_job();
  for (const char* strategy : {"main", "node", "all"}) {
    EXPECT_EQ(sync({logs(), "--dry-run", "--strategy", strategy}, {{"WANDB_API_KEY", ""}}), 0) << errors_;
    EXPECT_NE(output_.find(std::string("job-1-") + strategy + "-r0-"), std::string::npos) << output_;
  }
  EXPECT_EQ(sync({"plan", logs(), "--strategy", "node", "--json"}), 0);
  const json plan = json::parse(output_);
  EXPECT_EQ(plan["experiments"][0]["runs"].size(), 2U);
  EXPECT_EQ(plan["experiments"][0]["runs"][1]["ranks"], json({2, 3}));
}

TEST_F(SyncTest, AnOutputThatCannotBeWrittenIsNoSuccess) {
  write_job();
  const auto sync_to = [&](const std::string& output) {
    ranklog::test::Process process(
        "/bin/sh", {"-c", std::string(WANDB_SYNC_PROGRAM) + " --dry-run '" + logs() + "' " + output});
    const int status = process.wait();
    return std::pair(status, process.errors());
  };
  const auto [status, errors] = sync_to("> /dev/full");
  EXPECT_EQ(status, 1);
  EXPECT_NE(errors.find("cannot write the output: No space left on device"), std::string::npos) << errors;
  EXPECT_EQ(sync_to("| true").second, "");
}

struct Weather {
  std::string name;
  json rule;
};

class WeatherTest : public SyncTest, public ::testing::WithParamInterface<Weather> {};

TEST_P(WeatherTest, RowsArriveExactlyOnce) {
  write_job();
  json rule = GetParam().rule;
  rule["path"] = "*/file_stream";
  rule["at"] = 1;
  serve(json::array({rule}));
  ASSERT_EQ(sync({logs(), "--strategy", "main"}), 0) << errors_ << output_;
  EXPECT_NE(errors_.find("trying again"), std::string::npos) << "nothing went wrong: " << errors_;
  const json found = runs();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.begin().value()["state"], "finished");
  EXPECT_EQ(found.begin().value()["anomalies"], json::array());
  expect_rows_once(found.begin().key(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, WeatherTest,
    ::testing::Values(Weather{"RateLimited", {{"action", "status"}, {"status", 429}, {"retry_after", 1}}},
                      Weather{"ServerError", {{"action", "status"}, {"status", 500}}},
                      Weather{"ConnectionCut", {{"action", "cut_before"}}},
                      Weather{"ReplyLost", {{"action", "cut_after"}}},
                      Weather{"HalfAReply", {{"action", "half_body"}}}),
    [](const auto& test) { return test.param.name; });

TEST_F(SyncTest, WrongKeyIsAnAuthorizationError) {
  write_job();
  serve(json::array(), {"--api-key", std::string(40, '8')});
  EXPECT_EQ(sync({logs()}), kExitUnauthorized);
  EXPECT_NE(errors_.find("refused the API key from WANDB_API_KEY"), std::string::npos) << errors_;
  EXPECT_EQ(errors_.find(key_), std::string::npos);
}

TEST_F(SyncTest, MissingKeyNamesWhereToPutOne) {
  write_job();
  serve();
  EXPECT_EQ(sync({logs()}, {{"WANDB_API_KEY", ""}}), kExitUnauthorized);
  for (const std::string& part : {std::string("WANDB_API_KEY"), std::string(".netrc"), url_.substr(7)}) {
    EXPECT_NE(errors_.find(part), std::string::npos) << errors_;
  }
}

TEST_F(SyncTest, KeyIsFoundInNetrcUnderHostAndPort) {
  write_job();
  serve(json::array(), {"--api-key", key_});
  ranklog::test::write_file(dir_ / ".netrc",
                            "machine " + url_.substr(7) + "\n  login user\n  password " + key_ + "\n");
  EXPECT_EQ(sync({logs()}, {{"WANDB_API_KEY", ""}}), 0) << errors_;
}

TEST_F(SyncTest, ForbiddenProjectIsNamed) {
  write_job();
  serve(
      json::array({{{"operation", "UpsertBucket"}, {"action", "status"}, {"status", 403}, {"at", "1-99"}}}));
  EXPECT_EQ(sync({logs(), "-e", "acme"}), kExitUnauthorized);
  for (const char* name : {"acme", "distributed-wandb"})
    EXPECT_NE(output_.find(name), std::string::npos) << output_;
  EXPECT_NE(output_.find("1 FAILED"), std::string::npos) << output_;
}

TEST_F(SyncTest, ServerThatIsGoneIsTemporary) {
  write_job();
  serve();
  stop_serving();
  EXPECT_EQ(sync({logs(), "--timeout", "2"}), kExitTemporary);
  EXPECT_NE(errors_.find("run the same command again"), std::string::npos) << errors_;
}

TEST_F(SyncTest, TruncatedRankFileLeavesTheOthersUpAndThePushPartial) {
  write_job();
  std::filesystem::resize_file(folder() / "rank-00001.db", 1000);
  serve();
  EXPECT_EQ(sync({logs(), "--strategy", "all"}), kExitFailed);
  EXPECT_EQ(runs().size(), 3U);
  EXPECT_NE(output_.find("rank-00001.db"), std::string::npos) << output_;
  EXPECT_NE(output_.find("3 runs uploaded, PARTIAL"), std::string::npos) << output_;
}

TEST_F(SyncTest, RankFileOfWhichNoRowCanBeReadMakesNoRun) {
  write_job();
  ranklog::test::ruin_chunks(folder() / "rank-00001.db");
  serve();
  EXPECT_EQ(sync({logs(), "--strategy", "all"}), kExitFailed);
  EXPECT_EQ(runs().size(), 3U) << output_;
  EXPECT_NE(output_.find("rank-1"), std::string::npos) << output_;
}

TEST_F(SyncTest, FileOfSomethingElseIsNamed) {
  write_job();
  ranklog::test::write_file(dir_ / "other.db", std::string(5000, 'z'));
  serve();
  EXPECT_EQ(sync({logs(), (dir_ / "other.db").string()}), kExitFailed);
  EXPECT_NE(output_.find("other.db"), std::string::npos) << output_;
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_EQ(sync({(dir_ / "other.db").string()}), kExitDamaged);
}

TEST_F(SyncTest, DatabaseOfAnotherProgramIsNamed) {
  write_job();
  const std::string other = (dir_ / "places.db").string();
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(other.c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, "CREATE TABLE places(url TEXT); INSERT INTO places VALUES('x')", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(raw);
  const std::string before = ranklog::test::read_file(other);
  serve();
  EXPECT_EQ(sync({logs(), other}), kExitFailed);
  EXPECT_NE(output_.find("places.db"), std::string::npos) << output_;
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_EQ(sync({other}), kExitDamaged);
  EXPECT_EQ(ranklog::test::read_file(other), before);
}

// Names, sizes and bytes of all files below a folder.
std::map<std::string, std::string> contents_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    contents[entry.path().string()] = entry.is_regular_file() ? ranklog::test::read_file(entry.path()) : "/";
  }
  return contents;
}

TEST_F(SyncTest, DryRunWritesNothingAndAsksNobody) {
  write_job();
  serve();
  const auto before = contents_of(logs());
  for (const char* strategy : {"main", "node", "all"}) {
    EXPECT_EQ(sync({logs(), "--dry-run", "--strategy", strategy}), 0) << errors_;
    EXPECT_EQ(sync({"plan", logs(), "--json", "--strategy", strategy}), 0) << errors_;
  }
  EXPECT_EQ(contents_of(logs()), before);
  EXPECT_EQ(requests_received(), 0U);
}

TEST_F(SyncTest, JsonIsPrintedOnErrorsToo) {
  write_job();
  serve();
  EXPECT_EQ(sync({"nowhere", "--json"}), kExitUsage);
  EXPECT_EQ(json::parse(output_)["exit_status"], kExitUsage);
  EXPECT_NE(json::parse(output_)["error"].get<std::string>().find("nowhere"), std::string::npos);
  key_ = "";
  EXPECT_EQ(sync({logs(), "--json"}), kExitUnauthorized);
  EXPECT_EQ(json::parse(output_)["exit_status"], kExitUnauthorized);
}

TEST_F(SyncTest, ProjectThatTheServerWouldRefuseIsFoundByThePlan) {
  write_job();
  EXPECT_EQ(sync({"plan", logs(), "-p", "pro/j"}), kExitUsage);
  EXPECT_NE(output_.find("-p/--project"), std::string::npos) << output_;
}

TEST_F(SyncTest, UsageErrorsAreUsageErrors) {
  write_job();
  std::filesystem::create_directories(dir_ / "empty");
  EXPECT_EQ(sync({logs(), "--strategy", "every"}), kExitUsage);
  for (const char* word : {"main", "node", "all"})
    EXPECT_NE(errors_.find(word), std::string::npos) << errors_;
  EXPECT_EQ(sync({(dir_ / "empty").string()}), kExitUsage);
  EXPECT_NE(errors_.find("empty"), std::string::npos);
  EXPECT_EQ(sync({logs(), "--nonsense"}), kExitUsage);
  EXPECT_NE(errors_.find("wandb-sync: "), std::string::npos);
  EXPECT_EQ(sync({logs(), "--jsn"}), kExitUsage);
  EXPECT_NE(errors_.find("did you mean --json?"), std::string::npos) << errors_;
  EXPECT_EQ(std::ranges::count(errors_, '\n'), 1);
  EXPECT_EQ(sync({"pln", logs()}), kExitUsage);
  EXPECT_NE(errors_.find("did you mean the command plan?"), std::string::npos) << errors_;
  EXPECT_EQ(sync({"plan", "nowhere"}), kExitUsage);
  EXPECT_EQ(sync({logs(), "--strategy", "node", "--main-rank", "1"}), kExitUsage);
  EXPECT_EQ(sync({logs(), "--strategy", "all", "--id", "x"}), kExitUsage);
  EXPECT_EQ(sync({"--help"}), 0);
  EXPECT_NE(output_.find("Exit status"), std::string::npos);
  EXPECT_EQ(sync({"--version"}), 0);
}

// Each allocation of the job left a piece, in a folder of its own; a sync after the last one makes one run of
// all.
TEST_F(SyncTest, PiecesOfOneJobBecomeOneRunInAnyOrder) {
  const int kFirst[] = {0, 8, 20, 32, 37};
  std::vector<std::string> pieces;
  for (int piece = 0; piece < 4; ++piece) {
    Job job;
    job.nodes = job.ranks_per_node = 1;
    job.attempt = piece;
    job.start_time_ns += piece * 10'800'000'000'000;
    job.adjust = [&](Identity& identity) {
      identity.wandb_run_id = "one-id";
      if (piece > 0) identity.resume_step = kFirst[piece];
    };
    const auto folder = dir_ / ("allocation-" + std::to_string(piece));
    RankFileBuilder file = job.open(folder, 0);
    for (int step = kFirst[piece]; step < kFirst[piece + 1]; ++step) file.row(step, {{"loss", step}});
    file.finish();
    pieces.push_back(folder.string());
  }
  // All 24 orders, each for a server and an upload state that know nothing yet.
  int order = 0;
  do {
    SCOPED_TRACE(pieces[0] + " " + pieces[1] + " " + pieces[2] + " " + pieces[3]);
    std::filesystem::remove_all(dir_ / "server");
    serve();
    std::vector<std::string> arguments = pieces;
    arguments.insert(arguments.end(),
                     {"--state-dir", (dir_ / ("state-" + std::to_string(order++))).string()});
    ASSERT_EQ(sync(arguments), 0) << errors_ << output_;
    const json found = runs();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found["one-id"]["anomalies"], json::array());
    const auto lines = history("one-id");
    ASSERT_EQ(lines.size(), 37U);
    for (int step = 0; step < 37; ++step) {
      const json row = json::parse(lines[static_cast<std::size_t>(step)]);
      EXPECT_EQ(row["_step"], step);
      EXPECT_EQ(row["loss"], step);
    }
    stop_serving();
  } while (std::ranges::next_permutation(pieces).found);
  EXPECT_EQ(order, 24);
}

TEST_F(SyncTest, ProcessThatDiedWithoutAWordIsUploadedAsCrashed) {
  const pid_t child = fork();
  if (child == 0) {
    Options options = options_of(0);
    options.world_size = options.local_world_size = 1;
    Writer log = Writer::open(options);
    for (int step = 0; step < 10; ++step) log.log(step, {{"loss", 1.0 / (step + 1)}});
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  serve();
  ASSERT_EQ(sync({logs()}), 0) << errors_ << output_;
  const json run = runs().begin().value();
  EXPECT_EQ(run["history_rows"], 10);
  EXPECT_EQ(run["exit_code"], nullptr);
  EXPECT_EQ(run["summary"]["loss"], 0.1);
  EXPECT_NE(output_.find("crashed"), std::string::npos) << output_;
  // Nobody says that it is complete, so it is what W&B makes of silence.
  EXPECT_EQ(run["state"], "running");
  advance_server(600);
  EXPECT_EQ(runs().begin().value()["state"], "crashed");
}

// Each allocation's piece is synced as soon as it ends, by the real writer with a fixed id.
TEST_F(SyncTest, PiecesSyncedOneByOneAreOneRun) {
  const int kFirst[] = {0, 8, 20, 32, 37};
  serve();
  for (int piece = 0; piece < 4; ++piece) {
    const ScopedVariable id("WANDB_RUN_ID", "one-id");
    Options options;
    options.console = false;
    options.system_metrics_interval = std::chrono::milliseconds(0);
    options.log_dir = logs();
    options.project = "distributed-wandb";
    options.rank = options.local_rank = options.node = 0;
    options.world_size = options.local_world_size = 1;
    options.resume = piece > 0;
    if (options.resume) options.resume_step = kFirst[piece];
    Writer log = Writer::open(options);
    for (int step = kFirst[piece]; step < kFirst[piece + 1]; ++step) log.log(step, {{"loss", step}});
    (void)log.finish();
    ASSERT_EQ(sync({logs()}), 0) << errors_ << output_;
    EXPECT_EQ(history("one-id").size(), static_cast<std::size_t>(kFirst[piece + 1]));
  }
  ASSERT_EQ(runs().size(), 1U);
  EXPECT_EQ(runs()["one-id"]["anomalies"], json::array());
  const auto lines = history("one-id");
  ASSERT_EQ(lines.size(), 37U);
  for (int step = 0; step < 37; ++step) {
    EXPECT_EQ(json::parse(lines[static_cast<std::size_t>(step)])["_step"], step);
  }
}

TEST_F(SyncTest, NaNAndInfinitiesArriveAsTokens) {
  Options options = options_of(0);
  options.world_size = options.local_world_size = 1;
  Writer log = Writer::open(options);
  const double inf = std::numeric_limits<double>::infinity();
  log.log(0, {{"a", std::numeric_limits<double>::quiet_NaN()}, {"b", inf}, {"c", -inf}});
  (void)log.finish();
  serve();
  ASSERT_EQ(sync({logs()}), 0) << errors_ << output_;
  const auto lines = history(runs().begin().key());
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find(R"("a":NaN,"b":Infinity,"c":-Infinity)"), std::string::npos) << lines[0];
}

TEST_F(SyncTest, RunIsRunningWhileItsWriterIsAndFinishedAfterwards) {
  Options options = options_of(0);
  options.world_size = options.local_world_size = 1;
  Writer log = Writer::open(options);
  serve();
  EXPECT_EQ(sync({logs()}), 0) << errors_;
  EXPECT_NE(output_.find("nothing to upload yet"), std::string::npos) << output_;
  for (int step = 0; step < 10; ++step) log.log(step, {{"loss", step}});
  EXPECT_EQ(sync({logs()}), 0) << errors_;
  EXPECT_NE(output_.find("still running"), std::string::npos) << output_;
  EXPECT_EQ(runs().begin().value()["state"], "running");
  EXPECT_EQ(runs().begin().value()["history_rows"], 9);
  log.log(10, {{"loss", 10}});
  (void)log.finish();
  EXPECT_EQ(sync({logs()}), 0) << errors_;
  EXPECT_EQ(runs().begin().value()["state"], "finished");
  EXPECT_EQ(runs().begin().value()["history_rows"], 11);
  EXPECT_EQ(runs().begin().value()["anomalies"], json::array());
}

TEST_F(SyncTest, KilledSyncIsTakenUpAgain) {
  write_job();
  // The history of the first run lands, and the reply takes its time.
  serve(json::array({{{"path", "*/file_stream"}, {"at", 1}, {"action", "delay"}, {"delay_ms", 4000}}}));
  const auto first = start({logs(), "--strategy", "main"});
  ASSERT_TRUE(first->wait_for_error_output("/runs/"));
  first->send(SIGKILL);
  EXPECT_EQ(first->wait(), 128 + SIGKILL);
  ASSERT_EQ(sync({logs(), "--strategy", "main"}), 0) << errors_ << output_;
  expect_rows_once(runs().begin().key(), 0);
  EXPECT_EQ(runs().begin().value()["state"], "finished");
  EXPECT_EQ(artifacts().size(), 2U);
}

TEST_F(SyncTest, SecondSyncOfOneExperimentNamesTheFirst) {
  write_job();
  serve(json::array({{{"path", "*/file_stream"}, {"at", 1}, {"action", "delay"}, {"delay_ms", 20000}}}));
  const auto first = start({logs(), "--strategy", "main"});
  ASSERT_TRUE(first->wait_for_error_output("/runs/"));
  EXPECT_EQ(sync({logs(), "--strategy", "node"}), kExitFailed);
  EXPECT_NE(output_.find("process " + std::to_string(first->pid())), std::string::npos) << output_;
  first->send(SIGINT);
  first->send(SIGINT);
  EXPECT_EQ(first->wait(), 130);
}

TEST_F(SyncTest, SigtermEndsWith143) {
  write_job();
  serve(
      json::array({{{"operation", "CreateArtifact"}, {"at", "1-9"}, {"action", "status"}, {"status", 503}}}));
  const auto first = start({logs(), "--strategy", "main"});
  ASSERT_TRUE(first->wait_for_error_output("trying again"));
  first->send(SIGTERM);
  EXPECT_EQ(first->wait(), 143);
}

// Without paths it asks first; Ctrl-C at the question is no answer but a stop.
TEST_F(SyncTest, CtrlCAtTheQuestionEndsWith130) {
  write_job();
  serve();
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    setenv("RANKLOG_DIR", logs().c_str(), 1);
    setenv("WANDB_BASE_URL", url_.c_str(), 1);
    execl(WANDB_SYNC_PROGRAM, WANDB_SYNC_PROGRAM, static_cast<char*>(nullptr));
    _exit(99);
  }
  std::string shown;
  for (char byte = 0; shown.find("[y/N]") == std::string::npos && read(terminal, &byte, 1) == 1;)
    shown += byte;
  ASSERT_NE(shown.find("[y/N]"), std::string::npos) << shown;
  ASSERT_EQ(write(terminal, "\x03", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(terminal);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(requests_received(), 0U);
}

// On a terminal one line is drawn over and over while the history goes up, and gone at the end.
TEST_F(SyncTest, ProgressIsOneLineOfTheTerminalAndClearedAtTheEnd) {
  write_job();
  serve(json::array({{{"path", "*/file_stream"}, {"action", "delay"}, {"delay_ms", 700}}}));
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    setenv("HOME", dir_.path().c_str(), 1);
    setenv("WANDB_BASE_URL", url_.c_str(), 1);
    setenv("WANDB_API_KEY", key_.c_str(), 1);
    setenv("no_proxy", "127.0.0.1", 1);
    unsetenv("WANDB_SILENT");
    unsetenv("WANDB_QUIET");
    const std::string folder = logs();
    execl(WANDB_SYNC_PROGRAM, WANDB_SYNC_PROGRAM, folder.c_str(), "--strategy", "main",
          static_cast<char*>(nullptr));
    _exit(99);
  }
  std::string shown;
  for (char byte = 0; read(terminal, &byte, 1) == 1;) shown += byte;  // until the program has ended
  close(terminal);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << shown;

  const std::string clear = "\r\x1b[K";
  const std::string line = clear + "history ";
  ASSERT_NE(shown.find(line), std::string::npos) << shown;
  EXPECT_NE(shown.find("/" + std::to_string(kSteps) + " steps ("), std::string::npos) << shown;
  // It is never left standing: what follows it clears it, and the report comes after that.
  const std::size_t last = shown.rfind("history ");
  const std::size_t end = shown.find_first_of("\r\n", last);
  ASSERT_NE(end, std::string::npos) << shown;
  EXPECT_EQ(shown.substr(end, clear.size()), clear) << shown;
  for (std::size_t at = shown.find("history "); at != std::string::npos;
       at = shown.find("history ", at + 1)) {
    EXPECT_EQ(shown[shown.find_first_of("\r\n", at)], '\r') << shown;
    EXPECT_NE(shown[shown.find_first_of("\r\n", at) + 1], '\n') << shown;
  }
  EXPECT_NE(shown.find("1 run uploaded", end), std::string::npos) << shown;
}

TEST_F(SyncTest, JsonOfAPushIsOneDocumentAndProgressGoesElsewhere) {
  write_job();
  serve();
  ASSERT_EQ(sync({"push", logs(), "--strategy", "node", "--json"}), 0) << errors_;
  const json report = json::parse(output_, nullptr, false);  // refuses anything around the document
  ASSERT_TRUE(report.is_object()) << output_;
  EXPECT_EQ(report["exit_status"], 0);
  ASSERT_EQ(report["experiments"].size(), 1U);
  EXPECT_EQ(report["experiments"][0]["runs"].size(), 2U);
  EXPECT_EQ(report["experiments"][0]["runs"][0]["outcome"], "uploaded");
  EXPECT_NE(errors_.find("strategy node, 2 runs"), std::string::npos) << errors_;
  EXPECT_NE(errors_.find("run http://127.0.0.1:"), std::string::npos) << errors_;
  EXPECT_EQ(errors_.find('\x1b'), std::string::npos) << "no terminal, no control codes: " << errors_;
}

// Killed where it hurts most, with the server having acted: the next sync makes it whole.
TEST_F(SyncTest, KilledAfterARequestThatLandedItIsTakenUpAgain) {
  const json kPlaces[] = {{{"operation", "UpsertBucket"}, {"at", 1}},
                          {{"path", "*/file_stream"}, {"at", 1}},
                          {{"path", "*/file_stream"}, {"at", 2}},
                          {{"path", "*/file_stream"}, {"at", 3}},
                          {{"operation", "CommitArtifact"}, {"at", 1}}};
  for (json rule : kPlaces) {
    std::filesystem::remove_all(dir_ / "server");
    std::filesystem::remove_all(logs());
    write_job();
    rule.update({{"action", "status"}, {"status", 503}, {"process", true}});
    serve(json::array({rule}));
    const auto first = start({logs(), "--strategy", "main"});
    ASSERT_TRUE(first->wait_for_error_output("trying again")) << rule << first->errors();
    first->send(SIGKILL);
    (void)first->wait();
    ASSERT_EQ(sync({logs(), "--strategy", "main"}), 0) << rule << errors_ << output_;
    expect_rows_once(runs().begin().key(), 0);
    EXPECT_EQ(runs().begin().value()["state"], "finished") << rule;
    EXPECT_EQ(artifacts().size(), 2U) << rule;
  }
}

TEST_F(SyncTest, CtrlCSavesAndTheNextSyncGoesOn) {
  write_job();
  serve(
      json::array({{{"operation", "CreateArtifact"}, {"at", "1-9"}, {"action", "status"}, {"status", 503}}}));
  const auto first = start({logs(), "--strategy", "main"});
  ASSERT_TRUE(first->wait_for_error_output("trying again"));
  first->send(SIGINT);
  EXPECT_EQ(first->wait(), 130);
  serve();
  ASSERT_EQ(sync({logs(), "--strategy", "main"}, {}), 0) << errors_ << output_;
}

}  // namespace
}  // namespace ranklog::sync::test
