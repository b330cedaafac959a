// Artifact operations (protocol page 7.2).
#include <nlohmann/json.hpp>

#include "json_access.hpp"
#include "upload_headers.hpp"
#include "wandb_api.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;

constexpr std::string_view kCreateArtifact = R"(
mutation CreateArtifact($input: CreateArtifactInput!) {
  createArtifact(input: $input) { artifact { id state artifactSequence { latestArtifact { id } } } }
})";

constexpr std::string_view kCreateArtifactManifest = R"(
mutation CreateArtifactManifest(
  $artifactID: ID!, $baseArtifactID: ID, $name: String!, $digest: String!, $entityName: String!,
  $projectName: String!, $runName: String!, $manifestType: ArtifactManifestType!, $includeUpload: Boolean!
) {
  createArtifactManifest(input: {
    artifactID: $artifactID, baseArtifactID: $baseArtifactID, name: $name, digest: $digest,
    entityName: $entityName, projectName: $projectName, runName: $runName, type: $manifestType
  }) {
    artifactManifest {
      id
      file { id uploadUrl @include(if: $includeUpload) uploadHeaders @include(if: $includeUpload) }
    }
  }
})";

constexpr std::string_view kCreateArtifactFiles = R"(
mutation CreateArtifactFiles(
  $artifactFiles: [CreateArtifactFileSpecInput!]!, $storageLayout: ArtifactStorageLayout!
) {
  createArtifactFiles(input: {artifactFiles: $artifactFiles, storageLayout: $storageLayout}) {
    files {
      edges {
        node {
          storagePath uploadUrl uploadHeaders
          uploadMultipartUrls { uploadID uploadUrlParts { partNumber uploadUrl } }
          artifact { id }
        }
      }
    }
  }
})";

constexpr std::string_view kCommitArtifact = R"(
mutation CommitArtifact($artifactID: ID!) {
  commitArtifact(input: {artifactID: $artifactID}) { artifact { id digest } }
})";

constexpr std::string_view kUseArtifact = R"(
mutation UseArtifact($input: UseArtifactInput!) { useArtifact(input: $input) { artifact { id } } })";

constexpr std::string_view kClientIdMapping = R"(
query ClientIDMapping($clientID: ID!) { clientIDMapping(clientID: $clientID) { serverID } })";

constexpr std::string_view kAddAliases = R"(
mutation AddAliases($artifactID: ID!, $aliases: [ArtifactAliasInput!]!) {
  addAliases(input: {artifactID: $artifactID, aliases: $aliases}) { success }
})";

constexpr std::string_view kUpdateArtifact = R"(
mutation UpdateArtifact($artifactID: ID!, $metadata: JSONString) {
  updateArtifact(input: {artifactID: $artifactID, metadata: $metadata}) { artifact { id } }
})";

json alias_list(const std::string& name, const std::vector<std::string>& aliases) {
  json list = json::array();
  for (const std::string& alias : aliases) {
    list.push_back({{"artifactCollectionName", name}, {"alias", alias}});
  }
  return list;
}

json create_input(const NewArtifact& artifact) {
  json input = {
      {"entityName", artifact.run.entity},
      {"projectName", artifact.run.project},
      {"runName", artifact.run.run_id},
      {"artifactTypeName", artifact.type},
      {"artifactCollectionName", artifact.name},
      {"digest", artifact.digest},
      {"digestAlgorithm", "MANIFEST_MD5"},
      {"description", or_null(artifact.description)},
      {"metadata", or_null(artifact.metadata_json)},
      {"aliases", alias_list(artifact.name, artifact.aliases)},
      {"ttlDurationSeconds", nullptr},
      {"historyStep", artifact.history_step.value_or(0) == 0 ? json(nullptr) : json(*artifact.history_step)},
      {"enableDigestDeduplication", true},
      {"distributedID", nullptr},
      {"clientID", artifact.client_id},
      {"sequenceClientID", artifact.sequence_client_id},
      {"storageRegion", nullptr}};
  // Servers without tags refuse the key itself.
  if (!artifact.tags.empty()) {
    json tags = json::array();
    for (const std::string& tag : artifact.tags) tags.push_back({{"tagName", tag}});
    input["tags"] = std::move(tags);
  }
  return input;
}

}  // namespace

CreatedArtifact WandbApi::create_artifact(const NewArtifact& artifact) {
  const std::string what = "creating artifact " + artifact.name;
  const json data =
      graphql_.call("CreateArtifact", kCreateArtifact, {{"input", create_input(artifact)}}, what);
  const json& created = at_path(data, {"createArtifact", "artifact"});
  CreatedArtifact out;
  out.id = text_at(created, {"id"});
  const std::string state = text_at(created, {"state"});
  out.committed = state == "COMMITTED";
  out.latest_id = text_at(created, {"artifactSequence", "latestArtifact", "id"});
  if (out.id.empty() || (!out.committed && state != "PENDING" && state != "DELETED")) {
    throw Error(ErrorCode::kServer, what + ": the server answered state \"" + state + "\"");
  }
  return out;
}

WandbApi::Manifest WandbApi::create_manifest(const RunAddress& run, const CreatedArtifact& artifact,
                                             const std::string& md5_base64) {
  const bool upload = !md5_base64.empty();
  const json variables = {{"artifactID", artifact.id},     {"baseArtifactID", or_null(artifact.latest_id)},
                          {"name", "wandb_manifest.json"}, {"digest", md5_base64},
                          {"entityName", run.entity},      {"projectName", run.project},
                          {"runName", run.run_id},         {"manifestType", "FULL"},
                          {"includeUpload", upload}};
  const json data = graphql_.call("CreateArtifactManifest", kCreateArtifactManifest, variables,
                                  "creating the manifest of an artifact of run " + run.run_id);
  const json& manifest = at_path(data, {"createArtifactManifest", "artifactManifest"});
  Manifest out;
  out.id = text_at(manifest, {"id"});
  out.target = {"wandb_manifest.json", text_at(manifest, {"file", "uploadUrl"}),
                parse_upload_headers(at_path(manifest, {"file", "uploadHeaders"})), ""};
  if (out.id.empty()) throw Error(ErrorCode::kServer, "the server's answer names no artifact manifest");
  return out;
}

std::vector<UploadTarget> WandbApi::create_artifact_files(const std::string& artifact_id,
                                                          const std::string& manifest_id,
                                                          const std::vector<ArtifactFileSpec>& files) {
  json specs = json::array();
  for (const ArtifactFileSpec& file : files) {
    specs.push_back({{"artifactID", artifact_id},
                     {"artifactManifestID", manifest_id},
                     {"name", file.name},
                     {"md5", file.md5},
                     {"mimetype", nullptr},
                     {"uploadPartsInput", nullptr}});
  }
  const json data = graphql_.call("CreateArtifactFiles", kCreateArtifactFiles,
                                  {{"artifactFiles", specs}, {"storageLayout", "V2"}},
                                  "asking where to put the files of an artifact");
  const json& edges = at_path(data, {"createArtifactFiles", "files", "edges"});
  if (!edges.is_array() || edges.size() != files.size()) {
    throw Error(ErrorCode::kServer, "the server did not name one upload address for each of " +
                                        std::to_string(files.size()) + " artifact files");
  }
  std::vector<UploadTarget> targets;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const json& node = at_path(edges[i], {"node"});
    targets.push_back({files[i].name, text_at(node, {"uploadUrl"}),
                       parse_upload_headers(at_path(node, {"uploadHeaders"})),
                       text_at(node, {"artifact", "id"})});
  }
  return targets;
}

void WandbApi::commit_artifact(const std::string& artifact_id, const std::string& name) {
  (void)graphql_.call("CommitArtifact", kCommitArtifact, {{"artifactID", artifact_id}},
                      "committing artifact " + name);
}

void WandbApi::use_artifact(const RunAddress& run, const std::string& artifact_id) {
  const json input = {{"artifactID", artifact_id},
                      {"entityName", run.entity},
                      {"projectName", run.project},
                      {"runName", run.run_id},
                      {"usedAs", nullptr}};
  (void)graphql_.call("UseArtifact", kUseArtifact, {{"input", input}},
                      "linking an artifact to run " + run.run_id);
}

std::string WandbApi::artifact_of_client(const std::string& client_id) {
  try {
    const json data = graphql_.call("ClientIDMapping", kClientIdMapping, {{"clientID", client_id}},
                                    "asking whose an artifact is");
    return text_at(data, {"clientIDMapping", "serverID"});
  } catch (const RefusedError& refusal) {
    if (refusal.code() == ErrorCode::kUnauthorized) throw;
    return "";
  }
}

void WandbApi::add_aliases(const std::string& artifact_id, const std::string& name,
                           const std::vector<std::string>& aliases) {
  (void)graphql_.call("AddAliases", kAddAliases,
                      {{"artifactID", artifact_id}, {"aliases", alias_list(name, aliases)}},
                      "naming a version of artifact " + name);
}

void WandbApi::update_metadata(const std::string& artifact_id, const std::string& name,
                               const std::string& metadata_json) {
  (void)graphql_.call("UpdateArtifact", kUpdateArtifact,
                      {{"artifactID", artifact_id}, {"metadata", metadata_json}},
                      "describing a version of artifact " + name);
}

}  // namespace ranklog::sync
