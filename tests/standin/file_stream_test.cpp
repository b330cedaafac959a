// file_stream: lines by offset, the end of a run, silence.

#include <gtest/gtest.h>
#include <zlib.h>

#include "harness.hpp"

namespace ranklog::standin {
namespace {

Json history_of(const StandinTest& server, const std::string& run) {
  return server.run_fields(run, "history")["history"];
}

// The anomalies that GET /standin/state tells of the only run.
Json anomalies(const StandinTest& server) {
  return server.get("http://x/standin/state").body["projects"][0]["runs"][0]["anomalies"];
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 256, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(StandinFileStream, LinesAreKeyedByOffsetAndARepeatIsHarmless) {
  StandinTest server;
  server.upsert("r1");
  const Json batch = history_chunk(0, {R"({"_step":0,"a":1})", R"({"_step":1,"a":NaN})"});
  EXPECT_EQ(server.stream("r1", batch).status, 200);
  EXPECT_EQ(server.stream("r1", batch).status, 200);
  EXPECT_EQ(server.stream("r1", history_chunk(2, {R"({"_step":2})"})).status, 200);
  EXPECT_EQ(history_of(server, "r1"),
            Json::array({R"({"_step":0,"a":1})", R"({"_step":1,"a":NaN})", R"({"_step":2})"}));
  EXPECT_TRUE(anomalies(server).empty());
}

TEST(StandinFileStream, ALaterLineAtTheSameOffsetWinsAndIsNoted) {
  StandinTest server;
  server.upsert("r1");
  server.stream("r1", history_chunk(0, {R"({"_step":0,"a":1})", R"({"_step":1})"}));
  server.stream("r1", history_chunk(0, {R"({"_step":0,"a":2})"}));
  EXPECT_EQ(history_of(server, "r1"), Json::array({R"({"_step":0,"a":2})", R"({"_step":1})"}));
  ASSERT_EQ(anomalies(server).size(), 1U);
  EXPECT_NE(anomalies(server)[0].get<std::string>().find("other content"), std::string::npos);
}

TEST(StandinFileStream, AGapIsNotedAndCanBeFilled) {
  StandinTest server;
  server.upsert("r1");
  server.stream("r1", history_chunk(2, {R"({"_step":2})"}));
  ASSERT_FALSE(anomalies(server).empty());
  EXPECT_NE(anomalies(server)[0].get<std::string>().find("gap"), std::string::npos);
  EXPECT_EQ(history_of(server, "r1"), Json::array({R"({"_step":2})"}));
  server.stream("r1", history_chunk(0, {R"({"_step":0})", R"({"_step":1})"}));
  EXPECT_EQ(history_of(server, "r1").size(), 3U);
}

TEST(StandinFileStream, StepsThatAreNoIntegersOrGoBackAreNoted) {
  StandinTest server;
  server.upsert("r1");
  server.stream("r1", history_chunk(0, {R"({"_step":5.0})", R"({"_step":3})", R"({"_step":3})", "not json"}));
  const Json found = anomalies(server);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NE(found[0].get<std::string>().find("no integer _step"), std::string::npos);
  EXPECT_NE(found[1].get<std::string>().find("_step 3 follows 3"), std::string::npos);
  EXPECT_NE(found[2].get<std::string>().find("not a JSON object"), std::string::npos);
}

TEST(StandinFileStream, SummaryIsReplacedByItsLastLine) {
  StandinTest server;
  server.upsert("r1");
  server.stream("r1", {{"files", {{"wandb-summary.json", {{"offset", 0}, {"content", {R"({"loss":2})"}}}}}}});
  server.stream(
      "r1", {{"files", {{"wandb-summary.json", {{"offset", 0}, {"content", {R"({"loss":Infinity})"}}}}}}});
  EXPECT_EQ(server.run_fields("r1", "summaryMetrics")["summaryMetrics"], R"({"loss":Infinity})");
}

TEST(StandinFileStream, ConsoleLinesMayBeRewrittenAndComeAsAList) {
  StandinTest server;
  server.upsert("r1");
  server.stream("r1", {{"files", {{"output.log", {{"offset", 0}, {"content", {"1%", "b"}}}}}}});
  server.stream(
      "r1",
      {{"files",
        {{"output.log", {{{"offset", 0}, {"content", {"2%"}}}, {{"offset", 2}, {"content", {"c\n"}}}}}}}});
  EXPECT_EQ(server.run_fields("r1", "logLineCount")["logLineCount"], 3);
  EXPECT_EQ(test::read_file(server.folder() / "state/rehearsal/p/runs/r1/output.log"), "2%\nb\nc\n");
  EXPECT_TRUE(anomalies(server).empty());
}

TEST(StandinFileStream, CompleteEndsTheRunAndALaterPostRevivesIt) {
  StandinTest server;
  server.upsert("r1");
  const auto state = [&] { return server.run_fields("r1", "state")["state"]; };
  EXPECT_EQ(state(), "running");
  server.stream("r1", {{"complete", true}, {"exitcode", 0}});
  EXPECT_EQ(state(), "finished");
  server.stream("r1", Json::object());
  EXPECT_EQ(state(), "running");
  server.stream("r1", {{"complete", true}, {"exitcode", 3}});
  EXPECT_EQ(state(), "failed");
  server.stream("r1", {{"preempting", true}, {"complete", true}, {"exitcode", 1}});
  EXPECT_EQ(state(), "preempted");
}

TEST(StandinFileStream, ARunThatFallsSilentIsCrashedUntilItSpeaksAgain) {
  Settings settings;
  settings.crash_after = std::chrono::minutes(5);
  StandinTest server(settings);
  server.upsert("silent");
  server.upsert("done");
  server.stream("done", {{"complete", true}, {"exitcode", 0}});
  server.post("/standin/clock", {{"advance_seconds", 299}});
  EXPECT_EQ(server.run_fields("silent", "state")["state"], "running");
  server.post("/standin/clock", {{"advance_seconds", 2}});
  EXPECT_EQ(server.run_fields("silent", "state")["state"], "crashed");
  EXPECT_EQ(server.run_fields("done", "state")["state"], "finished");
  server.restart();
  EXPECT_EQ(server.run_fields("silent", "state")["state"], "crashed");
  server.stream("silent", Json::object());
  EXPECT_EQ(server.run_fields("silent", "state")["state"], "running");
}

TEST(StandinFileStream, MalformedBodiesChangeNothing) {
  StandinTest server;
  server.upsert("r1");
  const std::vector<Json> wrong = {
      Json::array(),
      {{"files", {{"wandb-history.jsonl", {{"offset", -1}, {"content", {"{}"}}}}}}},
      {{"files", {{"wandb-history.jsonl", {{"offset", 0}, {"content", {1}}}}}}},
      {{"files", {{"wandb-history.jsonl", {{"content", {"{}"}}}}}}},
      {{"files", {{"loss.jsonl", {{"offset", 0}, {"content", {"{}"}}}}}}},
      {{"files", {{"wandb-summary.json", {{"offset", 0}, {"content", {"no"}}}}}}},
      history_chunk(2'000'000, {R"({"_step":0})"}),
      {{"complete", "yes"}},
      {{"uploaded", {"../x"}}}};
  for (const Json& body : wrong) EXPECT_EQ(server.stream("r1", body).status, 400) << body;
  EXPECT_TRUE(history_of(server, "r1").empty());
  EXPECT_EQ(server.run_fields("r1", "state")["state"], "running");
}

TEST(StandinFileStream, UnknownRunsAndMissingKeysAreRefused) {
  StandinTest server;
  server.upsert("r1");
  EXPECT_EQ(server.stream("r2", Json::object()).status, 404);
  EXPECT_EQ(server.post_as("", "/files/rehearsal/p/r1/file_stream", Json::object()).status, 401);
}

TEST(StandinFileStream, CompressedBodiesAreRead) {
  StandinTest server;
  server.upsert("r1");
  const std::string body = gzip(history_chunk(0, {R"({"_step":0})"}).dump());
  const Reply reply = server.post_bytes("/files/rehearsal/p/r1/file_stream", body,
                                        {{"Content-Encoding", "gzip"}, {"Content-Type", "application/json"}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(history_of(server, "r1").size(), 1U);
}

TEST(StandinFileStream, AnUploadedFileThatNeverCameIsNoted) {
  StandinTest server;
  server.upsert("r1");
  server.stream("r1", {{"uploaded", {"config.yaml"}}});
  ASSERT_EQ(anomalies(server).size(), 1U);
  EXPECT_NE(anomalies(server)[0].get<std::string>().find("config.yaml"), std::string::npos);
}

TEST(StandinHistory, APageIsARangeOfStepsAndIsThinnedBeyondItsSamples) {
  StandinTest server;
  server.upsert("r1");
  std::vector<std::string> lines;
  for (int i = 0; i < 10; ++i) lines.push_back("{\"_step\":" + std::to_string(10 * i) + "}");
  server.stream("r1", history_chunk(0, lines));
  const std::string query = R"(
    query HistoryPage($entity: String!, $project: String!, $run: String!, $minStep: Int64!, $maxStep: Int64!,
        $pageSize: Int!) {
      project(name: $project, entityName: $entity) { run(name: $run) {
        history(minStep: $minStep, maxStep: $maxStep, samples: $pageSize) } } })";
  const auto page = [&](int low, int high, int size) {
    const Reply reply = server.graphql(query, {{"entity", "rehearsal"},
                                               {"project", "p"},
                                               {"run", "r1"},
                                               {"minStep", low},
                                               {"maxStep", high},
                                               {"pageSize", size}});
    return reply.data()["project"]["run"]["history"];
  };
  EXPECT_EQ(page(20, 50, 100), Json::array({R"({"_step":20})", R"({"_step":30})", R"({"_step":40})"}));
  EXPECT_EQ(page(0, 1000, 3).size(), 3U);
  EXPECT_EQ(page(1000, 2000, 3).size(), 0U);
}

TEST(StandinHistory, KeysAreCountedByType) {
  StandinTest server;
  server.upsert("r1");
  server.stream("r1", history_chunk(0, {R"({"_step":0,"loss":1,"a":{"b":NaN}})",
                                        R"({"_step":1,"h":{"_type":"histogram"}})"}));
  const Json keys = server.run_fields("r1", "historyKeys")["historyKeys"];
  EXPECT_EQ(keys["lastStep"], 1);
  EXPECT_EQ(keys["keys"]["loss"]["typeCounts"], Json::parse(R"([{"type":"number","count":1}])"));
  EXPECT_EQ(keys["keys"]["a.b"]["typeCounts"][0]["type"], "number");
  EXPECT_EQ(keys["keys"]["h"]["typeCounts"][0]["type"], "histogram");
}

}  // namespace
}  // namespace ranklog::standin
