// Identity, runs and run files (protocol page 2, 6.1).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "conflict.hpp"
#include "json_access.hpp"
#include "upload_headers.hpp"
#include "wandb_api.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;

constexpr std::string_view kViewer = "query Viewer { viewer { id entity username } }";

constexpr std::string_view kServerFeatures =
    "query ServerFeaturesQuery { serverInfo { features { name isEnabled } } }";

constexpr std::string_view kRunResumeStatus = R"(
query RunResumeStatus($project: String, $entity: String, $name: String!) {
  model(name: $project, entityName: $entity) {
    id name entity { id name }
    bucket(name: $name, missingOk: true) { id historyLineCount config tags }
  }
})";

constexpr std::string_view kUpsertBucket = R"(
mutation UpsertBucket(
  $id: String, $name: String, $project: String, $entity: String, $groupName: String, $description: String,
  $displayName: String, $notes: String, $commit: String, $config: JSONString, $host: String, $debug: Boolean,
  $program: String, $repo: String, $jobType: String, $state: String, $sweep: String, $tags: [String!],
  $summaryMetrics: JSONString
) {
  upsertBucket(input: {
    id: $id, name: $name, modelName: $project, entityName: $entity, groupName: $groupName,
    description: $description, displayName: $displayName, notes: $notes, commit: $commit, config: $config,
    host: $host, debug: $debug, jobProgram: $program, jobRepo: $repo, jobType: $jobType, state: $state,
    sweep: $sweep, tags: $tags, summaryMetrics: $summaryMetrics
  }) {
    bucket {
      id name
      project { id name entity { id name } }
    }
    inserted
  }
})";

constexpr std::string_view kCreateRunFiles = R"(
mutation CreateRunFiles($entity: String!, $project: String!, $run: String!, $files: [String!]!) {
  createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run, files: $files}) {
    runID uploadHeaders files { name uploadUrl }
  }
})";

std::string place_of(const RunHeader& header) {
  const std::string entity = header.entity.empty() ? "the default entity" : "entity " + header.entity;
  return "run " + header.run_id + " in project " + header.project + " of " + entity;
}

[[noreturn]] void explain_refused_upsert(const RefusedError& refusal, const RunHeader& header,
                                         const std::string& user) {
  const std::string place = place_of(header);
  if (refusal.server_text().find("previously created and deleted") != std::string::npos) {
    throw ConflictError(place + " was deleted at the server, which keeps its id for ever");
  }
  if (refusal.http_status() == 409) {
    throw Error(ErrorCode::kTemporary, place + " is busy at the server: " + refusal.server_text(),
                "run the same command again later");
  }
  if (refusal.code() == ErrorCode::kUnauthorized && refusal.http_status() != 401) {
    throw Error(ErrorCode::kUnauthorized,
                "user " + user + " may not create " + place + " (" + std::to_string(refusal.http_status()) +
                    ": " + refusal.server_text() + ")",
                "choose another with --entity and --project, or use the key of somebody who may");
  }
  throw Error(refusal.code(), place + ": " + refusal.what());
}

json upsert_variables(const RunHeader& header) {
  return {{"id", or_null(header.storage_id)},
          {"name", header.run_id},
          {"project", header.project},
          {"entity", or_null(header.entity)},
          {"groupName", or_null(header.group)},
          {"description", nullptr},
          {"displayName", or_null(header.display_name)},
          {"notes", or_null(header.notes)},
          {"commit", or_null(header.commit)},
          {"config", or_null(header.config)},
          {"host", or_null(header.host)},
          {"debug", nullptr},
          {"program", or_null(header.program)},
          {"repo", or_null(header.repository)},
          {"jobType", or_null(header.job_type)},
          {"state", nullptr},
          {"sweep", nullptr},
          {"tags", header.tags.empty() ? json(nullptr) : json(header.tags)},
          {"summaryMetrics", nullptr}};
}

}  // namespace

Viewer WandbApi::viewer() {
  const json data = graphql_.call("Viewer", kViewer, json::object(), "asking who the API key belongs to");
  const json& found = at_path(data, {"viewer"});
  if (!found.is_object()) {
    HttpResponse nobody;
    nobody.status = 401;
    access_.refuse(nobody, "asking who the API key belongs to");
  }
  return {text_at(found, {"entity"}), text_at(found, {"username"})};
}

std::set<std::string> WandbApi::features() {
  std::set<std::string> on;
  try {
    const json data = graphql_.call("ServerFeaturesQuery", kServerFeatures, json::object(),
                                    "asking what the server can do");
    const json& list = at_path(data, {"serverInfo", "features"});
    if (!list.is_array()) return on;
    for (const json& feature : list) {
      if (at_path(feature, {"isEnabled"}) == true) on.insert(text_at(feature, {"name"}));
    }
  } catch (const RefusedError& refusal) {
    // An old server does not know the question; a refused key is refused for everything else too.
    if (refusal.code() == ErrorCode::kUnauthorized) throw;
  }
  return on;
}

std::optional<RemoteRun> WandbApi::find_run(const RunAddress& run) {
  const json variables = {{"project", run.project}, {"entity", or_null(run.entity)}, {"name", run.run_id}};
  const json data = graphql_.call("RunResumeStatus", kRunResumeStatus, variables,
                                  "asking what the server has of run " + run.run_id);
  const json& bucket = at_path(data, {"model", "bucket"});
  if (!bucket.is_object()) return std::nullopt;
  RemoteRun out{
      text_at(bucket, {"id"}), count_at(bucket, {"historyLineCount"}), text_at(bucket, {"config"}), {}};
  const json& tags = at_path(bucket, {"tags"});
  for (std::size_t i = 0; tags.is_array() && i < tags.size(); ++i) {
    if (tags[i].is_string()) out.tags.push_back(tags[i]);
  }
  return out;
}

UpsertedRun WandbApi::upsert_run(const RunHeader& header, const std::string& user) {
  json data;
  try {
    data = graphql_.call("UpsertBucket", kUpsertBucket, upsert_variables(header),
                         "creating run " + header.run_id, Endpoint::kUpsert);
  } catch (const RefusedError& refusal) {
    explain_refused_upsert(refusal, header, user);
  }
  const json& bucket = at_path(data, {"upsertBucket", "bucket"});
  UpsertedRun out;
  out.storage_id = text_at(bucket, {"id"});
  out.address = {text_at(bucket, {"project", "entity", "name"}), text_at(bucket, {"project", "name"}),
                 text_at(bucket, {"name"})};
  if (out.storage_id.empty() || out.address.entity.empty() || out.address.project.empty()) {
    throw Error(ErrorCode::kServer, "creating run " + header.run_id + ": the server's answer names no run");
  }
  if (out.address.run_id.empty()) out.address.run_id = header.run_id;
  return out;
}

std::vector<UploadTarget> WandbApi::create_run_files(const RunAddress& run,
                                                     const std::vector<std::string>& names) {
  const json variables = {
      {"entity", run.entity}, {"project", run.project}, {"run", run.run_id}, {"files", names}};
  const json data = graphql_.call("CreateRunFiles", kCreateRunFiles, variables,
                                  "asking where to put the files of run " + run.run_id);
  const json& answer = at_path(data, {"createRunFiles"});
  const auto headers = parse_upload_headers(at_path(answer, {"uploadHeaders"}));
  std::vector<UploadTarget> targets;
  const json& files = at_path(answer, {"files"});
  if (files.is_array()) {
    for (const json& file : files) {
      targets.push_back({text_at(file, {"name"}), text_at(file, {"uploadUrl"}), headers, ""});
    }
  }
  if (targets.size() != names.size()) {
    throw Error(ErrorCode::kServer, "run " + run.run_id + ": the server named " +
                                        std::to_string(targets.size()) + " upload addresses for " +
                                        std::to_string(names.size()) + " files");
  }
  return targets;
}

}  // namespace ranklog::sync
