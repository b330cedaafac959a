// Misbehaviour by script.

#include <gtest/gtest.h>

#include <chrono>

#include "harness.hpp"
#include "script.hpp"

namespace ranklog::standin {
namespace {

Json rules(const std::string& text) {
  return {{"rules", Json::parse(text)}};
}

TEST(StandinScript, AnswersTheNthRequestWithAStatusAndRetryAfter) {
  StandinTest server(Settings{}, rules(R"([{"operation": "UpsertBucket", "at": "2-3", "action": "status",
                                           "status": 429, "retry_after": 1.5}])"));
  EXPECT_EQ(server.upsert("r1").status, 200);
  const Reply limited = server.upsert("r2");
  EXPECT_EQ(limited.status, 429);
  EXPECT_EQ(limited.headers.find("Retry-After")->second, "1.5");
  EXPECT_NE(limited.error(), "");
  EXPECT_EQ(server.upsert("r3").status, 429);
  EXPECT_EQ(server.upsert("r4").status, 200);
  EXPECT_THROW(server.run_fields("r2", "id").at("id"), std::exception) << "what was refused was not done";
}

TEST(StandinScript, ALostReplyIsDoneAndTheConnectionEndsWithoutAnAnswer) {
  StandinTest server(Settings{}, rules(R"([{"path": "*/file_stream", "at": 1, "action": "cut_after"}])"));
  server.upsert("r1");
  EXPECT_EQ(server.stream("r1", history_chunk(0, {R"({"_step":0})"})).status, 0);
  EXPECT_EQ(server.run_fields("r1", "historyLineCount")["historyLineCount"], 1);
  EXPECT_EQ(server.stream("r1", history_chunk(0, {R"({"_step":0})"})).status, 200);
  EXPECT_EQ(server.run_fields("r1", "historyLineCount")["historyLineCount"], 1);
}

TEST(StandinScript, ACutConnectionLeavesNothingDone) {
  StandinTest server(Settings{}, rules(R"([{"path": "*/file_stream", "at": 1, "action": "cut_before"}])"));
  server.upsert("r1");
  EXPECT_EQ(server.stream("r1", history_chunk(0, {R"({"_step":0})"})).status, 0);
  EXPECT_EQ(server.run_fields("r1", "historyLineCount")["historyLineCount"], 0);
}

TEST(StandinScript, HalfABodyIsNotAnAnswer) {
  StandinTest server(Settings{}, rules(R"([{"operation": "UpsertBucket", "at": 1, "action": "half_body"}])"));
  EXPECT_EQ(server.upsert("r1").status, 0);
  EXPECT_EQ(server.upsert("r1").data()["upsertBucket"]["inserted"], false) << "the first was done";
}

TEST(StandinScript, AnErrorCanHideThatTheWorkIsDone) {
  StandinTest server(Settings{},
                     rules(R"([{"operation": "UpsertBucket", "at": 1, "action": "status", "status": 502,
                                           "process": true, "body": "<html>bad gateway</html>"}])"));
  const Reply reply = server.upsert("r1");
  EXPECT_EQ(reply.status, 502);
  EXPECT_EQ(reply.text, "<html>bad gateway</html>");
  EXPECT_EQ(server.upsert("r1").data()["upsertBucket"]["inserted"], false);
}

TEST(StandinScript, ADelayHoldsTheAnswerBack) {
  StandinTest server(Settings{}, rules(R"([{"operation": "Viewer", "delay_ms": 300}])"));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(server.graphql("query Viewer { viewer { id } }").status, 200);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(300));
}

TEST(StandinScript, CanBeReplacedWhileTheServerRuns) {
  StandinTest server;
  EXPECT_EQ(
      server.post("/standin/script", rules(R"([{"method": "POST", "action": "status", "status": 503}])"))
          .status,
      200);
  EXPECT_EQ(server.upsert("r1").status, 503);
  EXPECT_EQ(server.post("/standin/script", Json::object()).status, 200);
  EXPECT_EQ(server.upsert("r1").status, 200);
}

TEST(StandinScript, FaultsAreInTheRequestLog) {
  StandinTest server(Settings{}, rules(R"([{"operation": "UpsertBucket", "action": "cut_before"}])"));
  server.upsert("r1");
  const Json entry = Json::parse(test::read_file(server.folder() / "state/requests.jsonl"));
  EXPECT_EQ(entry["fault"], "cut_before");
  EXPECT_EQ(entry["status"], 0);
}

TEST(StandinScript, AWrongRuleIsNamed) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      Script script(rules(text));
    } catch (const ApiError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal(R"([{"action": "delay"}, {"action": "explode"}])").find("rule 2"), std::string::npos);
  EXPECT_NE(refusal(R"([{"action": "status"}])").find("HTTP status"), std::string::npos);
  EXPECT_NE(refusal(R"([{"action": "delay", "at": 0}])").find("\"at\""), std::string::npos);
  EXPECT_NE(refusal(R"([{"action": "delay", "when": 1}])").find("\"when\""), std::string::npos);
  EXPECT_NE(refusal(R"([{"action": "delay", "delay": 5}])").find("delay_ms"), std::string::npos);
  EXPECT_EQ(refusal(R"([{"action": "delay", "at": [1, "3-4", "7-"]}])"), "");
}

TEST(StandinScript, OccurrencesAreCountedPerRule) {
  Script script(rules(
      R"([{"operation": "A", "at": 2, "action": "cut_before"}, {"path": "/graphql", "at": [3], "action": "cut_after"}])"));
  EXPECT_EQ(script.next("POST", "/graphql", "A").name, "");
  EXPECT_EQ(script.next("POST", "/graphql", "A").name, "cut_before");
  EXPECT_EQ(script.next("POST", "/graphql", "B").name, "cut_after");
  EXPECT_EQ(script.next("PUT", "/upload/x", "").name, "");
}

}  // namespace
}  // namespace ranklog::standin
