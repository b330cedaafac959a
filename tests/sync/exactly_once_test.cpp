// Whatever goes wrong and however often: the server ends up as after one undisturbed push.
#include <nlohmann/json.hpp>

#include "push_fixture.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog::sync::test {
namespace {

using nlohmann::json;
using Fault = FakeWandb::Fault;

class ExactlyOnceTest : public PushTest {
 protected:
  ExactlyOnceTest() {
    options_.parallel_runs = 1;
    Job job;
    job.nodes = 2;
    job.ranks_per_node = 1;
    for (int rank = 0; rank < 2; ++rank) {
      RankFileBuilder file = job.open(logs_.path(), rank);
      for (int step = 0; step < 5; ++step) file.row(step, {{"loss", rank + step}});
      if (rank == 0) add_artifact(file, "model", "checkpoints/a/model.pt", 4, "weights");
      file.finish();
    }
    state_ = job.folder(logs_.path()) / ".wandb-sync";
  }
  void SetUp() override { push_undisturbed(Strategy::kNode); }
  void push_undisturbed(Strategy strategy) {
    FakeWandb undisturbed;
    ASSERT_EQ(exit_status(push_as(undisturbed, strategy)), 0);
    want_ = undisturbed.state();
    requests_ = undisturbed.log.size();
    std::filesystem::remove_all(state_);
  }
  static bool is_history(const HttpRequest& request) {
    return request.body.find("wandb-history.jsonl") != std::string::npos;
  }
  // The n-th history request (from 0) goes wrong like this, once.
  static FakeWandb::FaultPlan at_history(int nth, Fault fault) {
    return [nth, fault, seen = 0](std::size_t, const HttpRequest& request) mutable -> std::optional<Fault> {
      if (!is_history(request) || seen++ != nth) return std::nullopt;
      return fault;
    };
  }
  void expect_as_undisturbed(FakeWandb& server) {
    EXPECT_EQ(first_difference(server.state(), want_), "");
    EXPECT_EQ(server.faults_of_client, std::vector<std::string>());
  }

  std::filesystem::path state_;
  std::string want_;
  std::size_t requests_ = 0;
};

TEST_F(ExactlyOnceTest, LostReplyIsNotSentAgainAfterItLanded) {
  for (const bool appends : {false, true}) {
    FakeWandb server;
    server.appends = appends;
    server.faults = at_history(0, {true, false, no_answer(Delivery::kUnclear)});
    EXPECT_EQ(exit_status(push_as(server, Strategy::kNode)), 0);
    expect_as_undisturbed(server);
    EXPECT_EQ(server.rows_received, 10U);
    std::filesystem::remove_all(state_);
  }
}

TEST_F(ExactlyOnceTest, LostRequestIsSentAgain) {
  for (const bool appends : {false, true}) {
    FakeWandb server;
    server.appends = appends;
    server.faults = at_history(1, {false, false, no_answer(Delivery::kUnclear)});
    EXPECT_EQ(exit_status(push_as(server, Strategy::kNode)), 0);
    expect_as_undisturbed(server);
    std::filesystem::remove_all(state_);
  }
}

TEST_F(ExactlyOnceTest, ServerErrorAfterTheFactIsAskedAbout) {
  FakeWandb server;
  server.appends = true;
  server.faults = at_history(0, {true, false, answer(502, "bad gateway")});
  EXPECT_EQ(exit_status(push_as(server, Strategy::kNode)), 0);
  expect_as_undisturbed(server);
}

// Counts are eventually consistent: one that has not moved yet proves nothing.
TEST_F(ExactlyOnceTest, StaleCountAfterALostReplyIsNotBelievedAtOnce) {
  push_undisturbed(Strategy::kMain);
  FakeWandb server;
  server.appends = true;
  server.faults = [&, hit = false](std::size_t, const HttpRequest& request) mutable -> std::optional<Fault> {
    if (!is_history(request) || hit) return std::nullopt;
    hit = true;
    server.stale_counts = {0, 0};
    return Fault{true, false, no_answer(Delivery::kUnclear)};
  };
  EXPECT_EQ(exit_status(push_as(server, Strategy::kMain)), 0);
  expect_as_undisturbed(server);
  EXPECT_EQ(server.rows_received, 5U);
}

TEST_F(ExactlyOnceTest, StaleCountAfterAKillIsNotBelievedAtOnce) {
  push_undisturbed(Strategy::kMain);
  FakeWandb server;
  server.appends = true;
  server.faults = at_history(0, {true, true, {}});
  EXPECT_THROW((void)push_as(server, Strategy::kMain), Killed);
  server.stale_counts = {0, 0};
  EXPECT_EQ(exit_status(push_as(server, Strategy::kMain)), 0);
  expect_as_undisturbed(server);
}

TEST_F(ExactlyOnceTest, BatchThatMayHaveLandedIsRememberedThroughALaterRefusal) {
  push_undisturbed(Strategy::kMain);
  FakeWandb server;
  server.appends = true;
  server.faults = [&, tries = 0](std::size_t, const HttpRequest& request) mutable -> std::optional<Fault> {
    if (!is_history(request) || tries > 1) return std::nullopt;
    if (tries++ == 1) return Fault{false, false, answer(400, "no")};
    server.stale_counts = std::deque<std::size_t>(5, 0);
    return Fault{true, false, no_answer(Delivery::kUnclear)};
  };
  EXPECT_EQ(exit_status(push_as(server, Strategy::kMain)), kExitFailed);
  server.stale_counts.clear();
  EXPECT_EQ(exit_status(push_as(server, Strategy::kMain)), 0);
  expect_as_undisturbed(server);
  EXPECT_EQ(server.rows_received, 5U);
}

TEST_F(ExactlyOnceTest, LineThatTheServerFindsTooLargeIsLeftOutAndNamed) {
  FakeWandb server;
  server.faults = [](std::size_t, const HttpRequest& request) -> std::optional<Fault> {
    const bool big = is_history(request) && request.body.find("\\\"_step\\\":2") != std::string::npos;
    return big ? std::optional<Fault>({false, false, answer(413, "too large")}) : std::nullopt;
  };
  const PushReport report = push_as(server, Strategy::kMain);
  EXPECT_EQ(exit_status(report), kExitFailed);
  EXPECT_NE(fault_of(report).find("step 2 is left out"), std::string::npos) << said(report);
  const auto& history = server.runs.begin()->second.history;
  ASSERT_EQ(history.size(), 4U);
  EXPECT_EQ(json::parse(history[2])["_step"], 3);
  // The next push agrees about the lines, with its state and without.
  for (const bool keep_state : {true, false}) {
    if (!keep_state) std::filesystem::remove_all(state_);
    const PushReport again = push_as(server, Strategy::kMain);
    EXPECT_EQ(exit_status(again), kExitFailed);
    EXPECT_NE(fault_of(again).find("step 2 is left out"), std::string::npos) << said(again);
    EXPECT_EQ(server.runs.begin()->second.history.size(), 4U);
    EXPECT_EQ(server.rows_received, 4U);
  }
}

// The server counts lines all the time; that must not renew the patience with lines that it never takes.
TEST_F(ExactlyOnceTest, HistoryThatIsNeverTakenEndsWithThePatience) {
  FakeWandb server;
  server.faults = [](std::size_t number, const HttpRequest& request) -> std::optional<Fault> {
    if (number > 1000) throw std::runtime_error("tried for ever");
    return is_history(request) ? std::optional<Fault>({false, false, answer(503, "busy")}) : std::nullopt;
  };
  options_.patience = std::chrono::seconds(120);
  const PushReport report = push_as(server, Strategy::kMain);
  EXPECT_EQ(exit_status(report), kExitTemporary) << said(report);
  EXPECT_LE(clock_.slept(), std::chrono::seconds(200));
}

TEST_F(ExactlyOnceTest, RateLimitIsSatOutWithoutAsking) {
  FakeWandb server;
  server.faults = at_history(0, {false, false, answer(429, "", {{"retry-after", "7"}})});
  EXPECT_EQ(exit_status(push_as(server, Strategy::kNode)), 0);
  expect_as_undisturbed(server);
  EXPECT_EQ(clock_.slept(), std::chrono::seconds(7));
  EXPECT_EQ(server.count("RunResumeStatus"), 2U);
}

TEST_F(ExactlyOnceTest, TooLargeRequestIsSplitUntilItFits) {
  FakeWandb server;
  server.faults = [](std::size_t, const HttpRequest& request) -> std::optional<Fault> {
    if (!is_history(request)) return std::nullopt;
    const auto lines = json::parse(request.body)["files"]["wandb-history.jsonl"]["content"].size();
    return lines > 2 ? std::optional<Fault>({false, false, answer(413, "too large")}) : std::nullopt;
  };
  EXPECT_EQ(exit_status(push_as(server, Strategy::kNode)), 0);
  expect_as_undisturbed(server);
}

TEST_F(ExactlyOnceTest, KilledBeforeOrAfterAnyRequestAndRunAgain) {
  push_undisturbed(Strategy::kMain);
  for (const bool acts : {false, true}) {
    for (std::size_t at = 0; at < requests_; ++at) {
      FakeWandb server;
      server.appends = true;
      server.faults = [&](std::size_t number, const HttpRequest&) -> std::optional<Fault> {
        return number == at ? std::optional<Fault>({acts, true, {}}) : std::nullopt;
      };
      EXPECT_THROW((void)push_as(server, Strategy::kMain), Killed);
      const PushReport report = push_as(server, Strategy::kMain);
      ASSERT_EQ(exit_status(report), 0) << said(report);
      ASSERT_EQ(first_difference(server.state(), want_), "")
          << "killed at request " << at << (acts ? " after" : " before");
      std::filesystem::remove_all(state_);
    }
  }
}

TEST_F(ExactlyOnceTest, KilledAgainAndAgainUntilItIsThrough) {
  FakeWandb server;
  server.appends = true;
  server.faults = [](std::size_t number, const HttpRequest&) -> std::optional<Fault> {
    return number % 11 == 10 ? std::optional<Fault>({number % 2 == 0, true, {}}) : std::nullopt;
  };
  bool through = false;
  for (int tries = 0; tries < 20 && !through; ++tries) {
    try {
      const PushReport report = push_as(server, Strategy::kNode);
      through = exit_status(report) == 0;
      ASSERT_TRUE(through) << said(report);
    } catch (const Killed&) {
      continue;
    }
  }
  EXPECT_TRUE(through);
  expect_as_undisturbed(server);
}

TEST_F(ExactlyOnceTest, BadWeatherOnEveryThirdRequest) {
  for (const bool appends : {false, true}) {
    FakeWandb server;
    server.appends = appends;
    server.faults = [](std::size_t number, const HttpRequest&) -> std::optional<Fault> {
      switch (number % 12) {
        case 2:
          return Fault{false, false, answer(500, "oops")};
        case 5:
          return Fault{true, false, no_answer(Delivery::kUnclear)};
        case 8:
          return Fault{false, false, no_answer(Delivery::kNotSent)};
        case 11:
          return Fault{true, false, answer(503, "busy")};
        default:
          return std::nullopt;
      }
    };
    EXPECT_EQ(exit_status(push_as(server, Strategy::kNode)), 0);
    expect_as_undisturbed(server);
    std::filesystem::remove_all(state_);
  }
}

TEST_F(ExactlyOnceTest, CountThatNobodyCanExplainStopsTheRun) {
  FakeWandb server;
  server.faults = [&](std::size_t, const HttpRequest& request) -> std::optional<Fault> {
    if (!is_history(request)) return std::nullopt;
    for (auto& [id, run] : server.runs) run.history.assign(3, "{}");  // somebody else writes
    return Fault{false, false, no_answer(Delivery::kUnclear)};
  };
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), kExitFailed);
  EXPECT_NE(fault_of(report).find("3 history lines where 0 or 5 were expected"), std::string::npos)
      << fault_of(report);
}

TEST_F(ExactlyOnceTest, DeletedRunIsNamed) {
  FakeWandb server;
  EXPECT_EQ(exit_status(push_to(server)), 0);
  server.runs.clear();
  options_.skip_synced = false;
  const PushReport report = push_to(server);
  EXPECT_EQ(exit_status(report), kExitFailed);
  EXPECT_NE(fault_of(report).find("no longer there"), std::string::npos) << fault_of(report);
}

}  // namespace
}  // namespace ranklog::sync::test
