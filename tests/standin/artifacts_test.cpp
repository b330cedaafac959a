// Artifacts from createArtifact to a version, and back.

#include <gtest/gtest.h>

#include "harness.hpp"
#include "ranklog/schema/digest.hpp"

namespace ranklog::standin {
namespace {

// Files of the protocol page's test vectors, whose digests W&B's own tests have.
const std::string kHello = "hello\n";
constexpr const char* kHelloMd5 = "sZRqySSS0jR8YjW00mERhA==";

std::string digest_of(const std::string& path, const std::string& md5) {
  return md5_hex("wandb-artifact-manifest-v1\n" + path + ":" + md5 + "\n");
}

Headers headers_of(const Json& list) {
  Headers headers;
  for (const std::string line : list) {
    const std::size_t colon = line.find(':');
    headers.emplace(line.substr(0, colon), line.substr(colon + 1));
  }
  return headers;
}

// Does what a client does, step by step, so that a test can leave a step out.
class ArtifactTest : public StandinTest {
 public:
  ArtifactTest() { upsert("r1"); }

  Reply create(const Json& more = Json::object()) {
    Json input = {{"entityName", "rehearsal"},
                  {"projectName", "p"},
                  {"runName", "r1"},
                  {"artifactTypeName", "model"},
                  {"artifactCollectionName", "m"},
                  {"digest", digest_of("a.txt", kHelloMd5)},
                  {"digestAlgorithm", "MANIFEST_MD5"},
                  {"enableDigestDeduplication", true},
                  {"aliases", {{{"artifactCollectionName", "m"}, {"alias", "latest"}}}}};
    input.update(more);
    return graphql(
        "mutation CreateArtifact($input: CreateArtifactInput!) { createArtifact(input: $input) { artifact "
        "{ id state artifactSequence { latestArtifact { id } } } } }",
        {{"input", input}});
  }

  Json new_artifact(const Json& more = Json::object()) {
    return create(more).data()["createArtifact"]["artifact"];
  }

  Json manifest(const Json& id, const std::string& digest) {
    const Reply reply = graphql(
        "mutation CreateArtifactManifest($id: ID!, $digest: String!, $upload: Boolean!) { "
        "createArtifactManifest(input: "
        "{artifactID: $id, name: \"wandb_manifest.json\", digest: $digest, entityName: \"rehearsal\", "
        "projectName: "
        "\"p\", runName: \"r1\", type: FULL}) { artifactManifest { id file { id uploadUrl @include(if: "
        "$upload) "
        "uploadHeaders @include(if: $upload) } } } }",
        {{"id", id}, {"digest", digest}, {"upload", !digest.empty()}});
    return reply.data()["createArtifactManifest"]["artifactManifest"];
  }

  Json announce(const Json& id, const std::string& path, const std::string& md5,
                const Json& parts = nullptr) {
    const Reply reply = graphql(
        "mutation CreateArtifactFiles($files: [CreateArtifactFileSpecInput!]!, $layout: "
        "ArtifactStorageLayout!) { "
        "createArtifactFiles(input: {artifactFiles: $files, storageLayout: $layout}) { files { edges { node "
        "{ "
        "storagePath uploadUrl uploadHeaders uploadMultipartUrls { uploadID uploadUrlParts { partNumber "
        "uploadUrl } } "
        "artifact { id } } } } } }",
        {{"files",
          {{{"artifactID", id},
            {"name", path},
            {"md5", md5},
            {"mimetype", nullptr},
            {"uploadPartsInput", parts}}}},
         {"layout", "V2"}});
    return reply.data()["createArtifactFiles"]["files"]["edges"][0]["node"];
  }

  // One manifest with one file.
  void upload_manifest(const Json& id, const std::string& path, const std::string& md5, std::size_t size) {
    const Json json = {{"version", 1},
                       {"storagePolicy", "wandb-storage-policy-v1"},
                       {"storagePolicyConfig", {{"storageLayout", "V2"}}},
                       {"contents", {{path, {{"digest", md5}, {"birthArtifactID", id}, {"size", size}}}}}};
    const std::string text = json.dump();
    const Json made = manifest(id, base64_of_hex(md5_hex(text)));
    EXPECT_EQ(put(made["file"]["uploadUrl"], text, headers_of(made["file"]["uploadHeaders"])).status, 200);
  }

  Reply commit(const Json& id) {
    return graphql(
        "mutation CommitArtifact($id: ID!) { commitArtifact(input: {artifactID: $id}) { artifact { id digest "
        "} } }",
        {{"id", id}});
  }

  // The whole way, with one file.
  Json log(const std::string& content, const Json& more = Json::object()) {
    const std::string md5 = base64_of_hex(md5_hex(content));
    Json with_digest = {{"digest", digest_of("a.txt", md5)}};
    with_digest.update(more);
    const Json artifact = new_artifact(with_digest);
    if (artifact["state"] == "COMMITTED") return artifact;
    manifest(artifact["id"], "");
    const Json file = announce(artifact["id"], "a.txt", md5);
    if (!file["uploadUrl"].is_null()) put(file["uploadUrl"], content, headers_of(file["uploadHeaders"]));
    upload_manifest(artifact["id"], "a.txt", md5, content.size());
    EXPECT_EQ(commit(artifact["id"]).status, 200);
    return artifact;
  }

  // version to aliases
  std::map<std::string, std::vector<std::string>> versions() {
    const Reply reply = graphql(
        "{ project(name: \"p\") { artifactType(name: \"model\") { artifactCollection(name: \"m\") { "
        "artifacts { "
        "totalCount edges { version node { aliases { alias } } } } } } } }");
    std::map<std::string, std::vector<std::string>> found;
    for (const Json& edge :
         reply.data()["project"]["artifactType"]["artifactCollection"]["artifacts"]["edges"]) {
      for (const Json& alias : edge["node"]["aliases"]) found[edge["version"]].push_back(alias["alias"]);
      found.try_emplace(edge["version"]);
    }
    return found;
  }
};

Json aliases(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back({{"artifactCollectionName", "m"}, {"alias", name}});
  return {{"aliases", list}};
}

TEST(StandinArtifacts, VersionsCountUpAndAliasesMove) {
  ArtifactTest server;
  server.log("one", aliases({"latest", "best"}));
  server.log("two", aliases({"latest"}));
  EXPECT_EQ(server.versions(),
            (std::map<std::string, std::vector<std::string>>{{"v0", {"best"}}, {"v1", {"latest"}}}));
  server.log("three", aliases({"latest", "best"}));
  EXPECT_EQ(server.versions()["v2"], (std::vector<std::string>{"best", "latest"}));
  EXPECT_TRUE(server.versions()["v0"].empty());
}

TEST(StandinArtifacts, OnlyACommitMakesAVersion) {
  ArtifactTest server;
  const Json artifact = server.new_artifact();
  EXPECT_EQ(artifact["state"], "PENDING");
  EXPECT_TRUE(artifact["artifactSequence"]["latestArtifact"].is_null());
  EXPECT_TRUE(server.versions().empty());
}

TEST(StandinArtifacts, TheSameDigestAsTheLatestVersionIsThatVersion) {
  ArtifactTest server;
  const Json first = server.log("one");
  const Json again = server.new_artifact(
      {{"digest", digest_of("a.txt", base64_of_hex(md5_hex("one")))}, {"clientID", "other"}});
  EXPECT_EQ(again["id"], first["id"]);
  EXPECT_EQ(again["state"], "COMMITTED");
  server.log("two");
  const Json older = server.log("one");
  EXPECT_NE(older["id"], first["id"]) << "only the latest version counts";
  EXPECT_EQ(server.versions().size(), 3U);
}

TEST(StandinArtifacts, AClientIdMakesCreationIdempotent) {
  ArtifactTest server;
  const Json first = server.new_artifact({{"clientID", "abc"}});
  EXPECT_EQ(server.new_artifact({{"clientID", "abc"}})["id"], first["id"]);
  EXPECT_NE(server.new_artifact({{"clientID", "abd"}})["id"], first["id"]);
  const Reply mapping = server.graphql(
      "query ClientIDMapping($c: ID!) { clientIDMapping(clientID: $c) { serverID } }", {{"c", "abc"}});
  EXPECT_EQ(mapping.data()["clientIDMapping"]["serverID"], first["id"]);
}

TEST(StandinArtifacts, ContentThatIsThereNeedsNoUpload) {
  ArtifactTest server;
  const Json first = server.log("same");
  const Json second = server.new_artifact({{"artifactCollectionName", "n"}, {"aliases", nullptr}});
  const Json file = server.announce(second["id"], "b.txt", base64_of_hex(md5_hex("same")));
  EXPECT_TRUE(file["uploadUrl"].is_null());
  EXPECT_EQ(file["artifact"]["id"], first["id"]) << "the artifact that the content was born with";
}

TEST(StandinArtifacts, CommitRefusesAManifestThatNeverCame) {
  ArtifactTest server;
  const Json artifact = server.new_artifact();
  EXPECT_NE(server.commit(artifact["id"]).error().find("no manifest"), std::string::npos);
  server.manifest(artifact["id"], kHelloMd5);
  EXPECT_NE(server.commit(artifact["id"]).error().find("never uploaded"), std::string::npos);
}

TEST(StandinArtifacts, CommitRefusesAFileThatNeverCame) {
  ArtifactTest server;
  const Json artifact = server.new_artifact();
  server.announce(artifact["id"], "a.txt", kHelloMd5);
  server.upload_manifest(artifact["id"], "a.txt", kHelloMd5, 6);
  const Reply refused = server.commit(artifact["id"]);
  EXPECT_NE(refused.error().find("\"a.txt\" of the manifest was never uploaded"), std::string::npos)
      << refused.text;
  EXPECT_TRUE(server.versions().empty());
}

TEST(StandinArtifacts, CommitRefusesASizeOrADigestThatDoesNotFit) {
  ArtifactTest server;
  const Json artifact = server.new_artifact();
  const Json file = server.announce(artifact["id"], "a.txt", kHelloMd5);
  ASSERT_EQ(server.put(file["uploadUrl"], kHello, headers_of(file["uploadHeaders"])).status, 200);
  server.upload_manifest(artifact["id"], "a.txt", kHelloMd5, 7);
  EXPECT_NE(server.commit(artifact["id"]).error().find("6 bytes, the manifest says 7"), std::string::npos);
  server.upload_manifest(artifact["id"], "b.txt", kHelloMd5, 6);
  EXPECT_NE(server.commit(artifact["id"]).error().find("not announced"), std::string::npos);
  server.announce(artifact["id"], "b.txt", kHelloMd5);
  EXPECT_NE(server.commit(artifact["id"]).error().find("the manifest makes"), std::string::npos);
  server.upload_manifest(artifact["id"], "a.txt", kHelloMd5, 6);
  EXPECT_EQ(server.commit(artifact["id"]).status, 200);
  EXPECT_EQ(server.commit(artifact["id"]).status, 200) << "a repeated commit is harmless";
  EXPECT_EQ(server.versions().size(), 1U);
}

TEST(StandinArtifacts, WhatIsCommittedCanBeReadBack) {
  ArtifactTest server;
  const Json artifact =
      server.log(kHello, {{"metadata", R"({"step":4})"}, {"description", "d"}, {"historyStep", 4}});
  const Reply reply = server.graphql(
      "query Q($id: ID!) { artifact(id: $id) { versionIndex digest state size fileCount historyStep metadata "
      "artifactType { name } artifactSequence { name } currentManifest { file { directUrl } } "
      "files(first: 10) { edges { node { name directUrl } } pageInfo { hasNextPage } } } }",
      {{"id", artifact["id"]}});
  const Json& found = reply.data()["artifact"];
  EXPECT_EQ(found["versionIndex"], 0);
  EXPECT_EQ(found["state"], "COMMITTED");
  EXPECT_EQ(found["size"], 6);
  EXPECT_EQ(found["metadata"], R"({"step":4})");
  EXPECT_EQ(found["artifactSequence"]["name"], "m");
  EXPECT_EQ(server.get(found["files"]["edges"][0]["node"]["directUrl"]).text, kHello);
  const Json manifest = server.get(found["currentManifest"]["file"]["directUrl"]).body;
  EXPECT_EQ(manifest["contents"]["a.txt"]["digest"], kHelloMd5);
  EXPECT_EQ(server.run_fields("r1", "outputArtifacts { totalCount }")["outputArtifacts"]["totalCount"], 1);
  EXPECT_EQ(test::read_file(server.folder() / "state/rehearsal/p/artifacts/m/v0/files/a.txt"), kHello);
}

TEST(StandinArtifacts, UsingOneMakesItAnInputOfTheRun) {
  ArtifactTest server;
  const Json artifact = server.log("one");
  server.upsert("r2");
  const Reply used = server.graphql(
      "mutation UseArtifact($input: UseArtifactInput!) { useArtifact(input: $input) { artifact { id } } }",
      {{"input",
        {{"artifactID", artifact["id"]},
         {"entityName", "rehearsal"},
         {"projectName", "p"},
         {"runName", "r2"}}}});
  EXPECT_EQ(used.data()["useArtifact"]["artifact"]["id"], artifact["id"]);
  EXPECT_EQ(server.run_fields("r2", "inputArtifacts { totalCount }")["inputArtifacts"]["totalCount"], 1);
}

TEST(StandinArtifacts, WhatWandbForbidsIsRefused) {
  ArtifactTest server;
  EXPECT_EQ(server.create({{"metadata", R"({"loss":NaN})"}}).status, 400);
  EXPECT_EQ(server.create({{"projectName", "other"}}).status, 404);
  EXPECT_EQ(server.create({{"runName", "other"}}).status, 404);
  EXPECT_EQ(server.create({{"artifactCollectionName", "a/b"}}).status, 400);
  EXPECT_EQ(server.create(aliases({"a:b"})).status, 400);
  EXPECT_EQ(server.create({{"unheardOf", 1}}).status, 400);
  server.new_artifact();
  EXPECT_EQ(server.create({{"artifactTypeName", "dataset"}}).status, 400)
      << "the collection has another type";
}

TEST(StandinUploads, AnAuthorizationHeaderIsRefusedAsS3Does) {
  ArtifactTest server;
  const Json artifact = server.new_artifact();
  const Json file = server.announce(artifact["id"], "a.txt", kHelloMd5);
  Headers headers = headers_of(file["uploadHeaders"]);
  headers.emplace("Authorization", "Basic YXBpOms=");
  EXPECT_EQ(server.put(file["uploadUrl"], kHello, headers).status, 400);
  headers.erase("Authorization");
  EXPECT_EQ(server.put(file["uploadUrl"], kHello, headers).status, 200);
}

TEST(StandinUploads, SignedHeadersAndDigestsAreChecked) {
  ArtifactTest server;
  const Json artifact = server.new_artifact();
  const Json file = server.announce(artifact["id"], "a.txt", kHelloMd5);
  EXPECT_EQ(server.put(file["uploadUrl"], kHello).status, 403) << "a signed header is missing";
  EXPECT_EQ(server.put(file["uploadUrl"], "other", headers_of(file["uploadHeaders"])).status, 400)
      << "not those bytes";
  EXPECT_EQ(server.put("http://x/upload/nobodyknows", kHello).status, 403);
  const Reply right = server.put(file["uploadUrl"], kHello, headers_of(file["uploadHeaders"]));
  EXPECT_EQ(right.headers.find("ETag")->second, "\"b1946ac92492d2347c6235b4d2611184\"");
}

TEST(StandinUploads, AFileInPartsIsPutTogether) {
  ArtifactTest server;
  const Json artifact = server.new_artifact();
  const Json parts = {{{"partNumber", 1}, {"hexMD5", md5_hex("hel")}},
                      {{"partNumber", 2}, {"hexMD5", md5_hex("lo\n")}}};
  const Json file = server.announce(artifact["id"], "a.txt", kHelloMd5, parts);
  const Json urls = file["uploadMultipartUrls"]["uploadUrlParts"];
  ASSERT_EQ(urls.size(), 2U);
  Json completed = Json::array();
  for (int i = 0; i < 2; ++i) {
    const std::string bytes = i == 0 ? "hel" : "lo\n";
    const Reply done = server.put(
        urls[i]["uploadUrl"], bytes,
        {{"Content-MD5", base64_of_hex(md5_hex(bytes))}, {"Content-Type", "application/octet-stream"}});
    ASSERT_EQ(done.status, 200);
    completed.push_back({{"partNumber", i + 1}, {"hexMD5", done.headers.find("ETag")->second}});
  }
  const Reply complete = server.graphql(
      "mutation CompleteMultipartUploadArtifact($action: CompleteMultipartAction!, $parts: "
      "[UploadPartsInput!]!, $id: "
      "ID!, $path: String!, $upload: String!) { completeMultipartUploadArtifact(input: "
      "{completeMultipartAction: $action, "
      "completedParts: $parts, artifactID: $id, storagePath: $path, uploadID: $upload}) { digest } }",
      {{"action", "Complete"},
       {"parts", completed},
       {"id", artifact["id"]},
       {"path", file["storagePath"]},
       {"upload", file["uploadMultipartUrls"]["uploadID"]}});
  EXPECT_EQ(complete.data()["completeMultipartUploadArtifact"]["digest"], kHelloMd5);
  server.upload_manifest(artifact["id"], "a.txt", kHelloMd5, 6);
  EXPECT_EQ(server.commit(artifact["id"]).status, 200);
}

TEST(StandinRestart, KeepsEverythingAndGoesOn) {
  ArtifactTest server;
  const Json artifact = server.log(kHello, {{"clientID", "abc"}});
  server.upsert("r1", {{"config", R"({"lr":{"value":0.1}})"}, {"groupName", "g"}});
  server.stream("r1", history_chunk(0, {R"({"_step":0})", R"({"_step":1})"}));
  server.stream("r1", {{"complete", true}, {"exitcode", 0}});
  const Json pending = server.new_artifact({{"digest", "0"}, {"clientID", "pending"}});
  const Json before = server.get("http://x/standin/state").body;
  server.restart();
  EXPECT_EQ(server.get("http://x/standin/state").body, before);
  EXPECT_EQ(server.new_artifact({{"clientID", "abc"}})["id"], artifact["id"]);
  EXPECT_EQ(server.new_artifact({{"digest", "0"}, {"clientID", "pending"}})["id"], pending["id"]);
  server.stream("r1", history_chunk(2, {R"({"_step":2})"}));
  EXPECT_EQ(server.run_fields("r1", "history")["history"].size(), 3U);
  const Json second = server.log("two");
  EXPECT_NE(second["id"], pending["id"]) << "numbers are not given twice";
  EXPECT_EQ(server.versions().size(), 2U);
}

TEST(StandinRestart, OldUploadAddressesHaveExpired) {
  ArtifactTest server;
  const Json file = server.announce(server.new_artifact()["id"], "a.txt", kHelloMd5);
  server.restart();
  EXPECT_EQ(server.put(file["uploadUrl"], kHello, headers_of(file["uploadHeaders"])).status, 403);
}

}  // namespace
}  // namespace ranklog::standin
