// Runs and projects: creating, changing, asking, deleting.

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <vector>

#include "harness.hpp"

namespace ranklog::standin {
namespace {

constexpr const char* kConfig = R"({"lr":{"value":0.1},"_wandb":{"value":{"t":{"12":"x"}}}})";

TEST(StandinRuns, UpsertCreatesRunAndProjectOnce) {
  StandinTest server;
  const Json first = server.upsert("r1", {{"config", kConfig}, {"displayName", "rank-0"}}).data();
  EXPECT_EQ(first["upsertBucket"]["inserted"], true);
  const Json& bucket = first["upsertBucket"]["bucket"];
  EXPECT_EQ(bucket["name"], "r1");
  EXPECT_EQ(bucket["displayName"], "rank-0");
  EXPECT_EQ(bucket["historyLineCount"], 0);
  EXPECT_EQ(bucket["project"]["entity"]["name"], "rehearsal");
  const Json again = server.upsert("r1").data();
  EXPECT_EQ(again["upsertBucket"]["inserted"], false);
  EXPECT_EQ(again["upsertBucket"]["bucket"]["id"], bucket["id"]);
}

TEST(StandinRuns, ConfigIsReplacedAsAWholeAndNullLeavesUnchanged) {
  StandinTest server;
  server.upsert("r1", {{"config", kConfig}, {"groupName", "g"}, {"tags", {"a", "b"}}});
  server.upsert("r1", {{"config", R"({"wd":{"value":NaN}})"}, {"groupName", nullptr}, {"tags", {"c"}}});
  const Json run = server.run_fields("r1", "config group tags");
  EXPECT_EQ(run["config"], R"({"wd":{"value":NaN}})");
  EXPECT_EQ(run["group"], "g");
  EXPECT_EQ(run["tags"], Json::array({"c"}));
}

TEST(StandinRuns, ARunCanBeChangedByItsStorageId) {
  StandinTest server;
  const Json id = server.upsert("r1").data()["upsertBucket"]["bucket"]["id"];
  EXPECT_EQ(server.upsert("ignored", {{"id", id}, {"notes", "n"}}).data()["upsertBucket"]["bucket"]["name"],
            "r1");
  EXPECT_EQ(server.run_fields("r1", "notes")["notes"], "n");
}

TEST(StandinRuns, ARunWithoutAChosenNameGetsOne) {
  StandinTest server;
  const Json bucket = server.upsert("r1").data()["upsertBucket"]["bucket"];
  EXPECT_FALSE(bucket["displayName"].get<std::string>().empty());
}

TEST(StandinRuns, ResumeStatusTellsCountsTailsAndTheMarkThatResumeNeeds) {
  StandinTest server;
  const std::string query = R"(
    query RunResumeStatus($project: String, $entity: String, $name: String!) {
      model(name: $project, entityName: $entity) { id name entity { id name } bucket(name: $name, missingOk: true) {
        id name summaryMetrics displayName logLineCount historyLineCount eventsLineCount historyTail eventsTail
        config tags notes wandbConfig(keys: ["t"]) } } })";
  const Json variables = {{"project", "p"}, {"entity", "rehearsal"}, {"name", "r1"}};
  EXPECT_TRUE(server.graphql(query, variables).data()["model"].is_null());
  server.upsert("r0");
  EXPECT_TRUE(server.graphql(query, variables).data()["model"]["bucket"].is_null());
  server.upsert("r1", {{"config", kConfig}});
  Json body = history_chunk(0, {R"({"_step":0})", R"({"_step":1})"});
  body["files"]["output.log"] = {{"offset", 0}, {"content", {"one"}}};
  server.stream("r1", body);
  const Json bucket = server.graphql(query, variables).data()["model"]["bucket"];
  EXPECT_EQ(bucket["historyLineCount"], 2);
  EXPECT_EQ(bucket["logLineCount"], 1);
  EXPECT_EQ(bucket["eventsLineCount"], 0);
  EXPECT_EQ(Json::parse(bucket["historyTail"].get<std::string>()), Json::array({R"({"_step":1})"}));
  EXPECT_EQ(bucket["wandbConfig"], R"({"t":{"12":"x"}})");
}

TEST(StandinRuns, NamesThatWandbForbidsAreRefused) {
  StandinTest server;
  EXPECT_EQ(server.upsert("a/b").status, 400);
  EXPECT_EQ(server.upsert("r1", {{"project", "a:b"}}).status, 400);
  EXPECT_EQ(server.upsert("r1", {{"project", std::string(129, 'p')}}).status, 400);
  EXPECT_EQ(server.upsert("r1", {{"displayName", std::string(129, 'n')}}).status, 400);
  EXPECT_EQ(server.upsert("r1", {{"tags", {""}}}).status, 400);
  EXPECT_EQ(server.upsert("r1", {{"tags", {std::string(65, 't')}}}).status, 400);
  EXPECT_EQ(server.upsert("r1", {{"config", "[1]"}}).status, 400);
  EXPECT_TRUE(server.graphql("{ project(name: \"p\") { id } }").data()["project"].is_null())
      << "nothing was made";
}

TEST(StandinRuns, UnknownEntitiesAreNeverCreated) {
  Settings settings;
  settings.entities = {"me", "team"};
  StandinTest server(settings);
  EXPECT_EQ(server.upsert("r1", {{"entity", "stranger"}}).status, 404);
  EXPECT_EQ(server.upsert("r1", {{"entity", "team"}}).status, 200);
  const Json made = server.upsert("r1", {{"entity", nullptr}}).data();
  EXPECT_EQ(made["upsertBucket"]["bucket"]["project"]["entity"]["name"], "me");
  const Json viewer =
      server.graphql("query Viewer { viewer { entity teams { edges { node { name } } } } }").data();
  EXPECT_EQ(viewer["viewer"]["entity"], "me");
  EXPECT_EQ(viewer["viewer"]["teams"]["edges"].size(), 2U);
}

TEST(StandinRuns, TheIdOfADeletedRunStaysReserved) {
  StandinTest server;
  const Json id = server.upsert("r1").data()["upsertBucket"]["bucket"]["id"];
  server.graphql("mutation DeleteRun($id: ID!) { deleteRun(input: {id: $id}) { clientMutationId } }",
                 {{"id", id}});
  const Reply refused = server.upsert("r1");
  EXPECT_EQ(refused.status, 409);
  EXPECT_NE(refused.error().find("previously created and deleted"), std::string::npos);
}

TEST(StandinRuns, UpsertModelMakesAProject) {
  StandinTest server;
  const Reply made = server.graphql(
      "mutation UpsertModel($name: String!, $entity: String!) "
      "{ upsertModel(input: {name: $name, entityName: $entity}) { model { name } } }",
      {{"name", "fresh"}, {"entity", "rehearsal"}});
  EXPECT_EQ(made.data()["upsertModel"]["model"]["name"], "fresh");
}

TEST(StandinRuns, RunFilesGoUpAndComeBack) {
  StandinTest server;
  server.upsert("r1");
  const Json created =
      server
          .graphql(
              "mutation CreateRunFiles($files: [String!]!) { createRunFiles(input: {entityName: "
              "\"rehearsal\", projectName: "
              "\"p\", runName: \"r1\", files: $files}) { runID uploadHeaders files { name uploadUrl } } }",
              {{"files", {"config.yaml", "media/images/a.png"}}})
          .data()["createRunFiles"];
  ASSERT_EQ(created["files"].size(), 2U);
  EXPECT_EQ(created["files"][1]["name"], "media/images/a.png");
  EXPECT_EQ(server.put(created["files"][1]["uploadUrl"], "hello\n").status, 200);
  const Json files = server.run_fields(
      "r1", "fileCount files(names: []) { edges { node { name sizeBytes md5 directUrl } } }");
  EXPECT_EQ(files["fileCount"], 1);
  const Json& node = files["files"]["edges"][0]["node"];
  EXPECT_EQ(node["name"], "media/images/a.png");
  EXPECT_EQ(node["md5"], "sZRqySSS0jR8YjW00mERhA==");
  EXPECT_EQ(server.get(node["directUrl"]).text, "hello\n");
}

TEST(StandinRuns, MarkRunFilesUploadedLeavesTheStateAlone) {
  StandinTest server;
  server.upsert("r1");
  server.stream("r1", {{"complete", true}, {"exitcode", 0}});
  const Reply marked = server.graphql(
      "mutation MarkRunFilesUploaded { markRunFilesUploaded(input: {entityName: \"rehearsal\", projectName: "
      "\"p\", "
      "runName: \"r1\", files: [\"a.txt\"]}) { success } }");
  EXPECT_EQ(marked.data()["markRunFilesUploaded"]["success"], true);
  EXPECT_EQ(server.run_fields("r1", "state")["state"], "finished");
}

TEST(StandinRuns, FileNamesThatClimbOutAreRefused) {
  StandinTest server;
  server.upsert("r1");
  for (const char* name : {"../x", "/x", "a//b", "a/./b", ""}) {
    const Reply reply = server.graphql(
        "mutation CreateRunFiles($files: [String!]!) { createRunFiles(input: {entityName: \"rehearsal\", "
        "projectName: \"p\", runName: \"r1\", files: $files}) { runID } }",
        {{"files", {name}}});
    EXPECT_EQ(reply.status, 400) << name;
  }
}

// "0.70.1" as numbers: as texts, 0.9.0 is more than 0.70.0. Throws for what is no three numbers.
std::vector<int> version_numbers(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '.');) numbers.push_back(std::stoi(part));
  if (numbers.size() != 3) throw std::invalid_argument("no version: " + text);
  return numbers;
}

TEST(StandinServer, PresentsItselfWithFeaturesAndARecentVersion) {
  EXPECT_LT(version_numbers("0.9.0"), version_numbers("0.70.0"));
  StandinTest server;
  const Json info = server
                        .graphql(
                            "query ServerInfo { serverInfo { cliVersionInfo latestLocalVersionInfo { "
                            "versionOnThisInstanceString } "
                            "features { name isEnabled } } }")
                        .data()["serverInfo"];
  const auto version = version_numbers(info["latestLocalVersionInfo"]["versionOnThisInstanceString"]);
  EXPECT_GE(version, (std::vector<int>{0, 70, 0}));
  bool gzip = false;
  for (const Json& feature : info["features"]) gzip = gzip || feature["name"] == "FILESTREAM_GZIP";
  EXPECT_TRUE(gzip);
}

TEST(StandinServer, OfTwoOperationsInOneDocumentTheNamedOneIsCarriedOut) {
  const Json rules = {{{"operation", "First"}, {"at", 2}, {"action", "status"}, {"status", 503}}};
  StandinTest server(Settings{}, {{"rules", rules}});
  const std::string two =
      "query First { viewer { username } } "
      "mutation Second { upsertBucket(input: {name: \"r1\", modelName: \"p\", entityName: \"rehearsal\"}) "
      "{ inserted } }";
  const auto ask = [&](const char* name) {
    return server.post("/graphql", {{"query", two}, {"operationName", name}});
  };
  const auto runs = [&] {
    return Json::parse(server.get("http://server/standin/state").text)["projects"].size();
  };

  const Reply first = ask("First");
  EXPECT_TRUE(first.data().contains("viewer")) << first.text;
  EXPECT_EQ(first.data().size(), 1U) << first.text;
  EXPECT_EQ(runs(), 0U) << "the other one was carried out, too";
  const Reply second = ask("Second");
  EXPECT_EQ(second.data(), Json::parse(R"({"upsertBucket": {"inserted": true}})")) << second.text;
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(ask("First").status, 503) << "a rule counts by the operation that was named";
  EXPECT_EQ(ask("Second").status, 200);

  const Reply unknown = ask("Third");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_NE(unknown.error().find("Third"), std::string::npos) << unknown.text;
  const Reply unnamed = server.graphql(two);
  EXPECT_EQ(unnamed.status, 400) << unnamed.text;
  EXPECT_FALSE(unnamed.error().empty());
}

TEST(StandinServer, UnknownOperationsAreNamed) {
  StandinTest server;
  const Reply reply = server.graphql("query Launch { launchQueue { id } }");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.error().find("Launch"), std::string::npos);
  EXPECT_EQ(reply.body["errors"][0]["path"], Json::array({"Launch"}));
}

TEST(StandinServer, KeysAreChecked) {
  StandinTest any;
  const Json viewer = {{"query", "query Viewer { viewer { id } }"}};
  EXPECT_EQ(any.post_as(kKey, "/graphql", viewer).status, 200);
  EXPECT_EQ(any.post_as("local-" + kKey, "/graphql", viewer).status, 200);
  EXPECT_EQ(any.post_as("a.b.c", "/graphql", viewer).status, 200);
  EXPECT_EQ(any.post_as("short", "/graphql", viewer).status, 401);
  EXPECT_EQ(any.post_as("", "/graphql", viewer).status, 401);
  Settings settings;
  settings.api_key = std::string(40, 'x');
  StandinTest one(settings);
  EXPECT_EQ(one.post_as(kKey, "/graphql", viewer).status, 401);
  EXPECT_EQ(one.post_as(settings.api_key, "/graphql", viewer).status, 200);
}

TEST(StandinServer, TheRequestLogHoldsOperationAndBodyButNeverTheKey) {
  StandinTest server;
  server.upsert("r1", {{"notes", "remember"}});
  const std::string log = test::read_file(server.folder() / "state/requests.jsonl");
  const Json entry = Json::parse(log.substr(0, log.find('\n')));
  EXPECT_EQ(entry["operation"], "UpsertBucket");
  EXPECT_EQ(entry["status"], 200);
  EXPECT_EQ(entry["body"]["variables"]["notes"], "remember");
  EXPECT_EQ(log.find(kKey), std::string::npos);
  EXPECT_EQ(log.find("Basic YX"), std::string::npos);
}

}  // namespace
}  // namespace ranklog::standin
