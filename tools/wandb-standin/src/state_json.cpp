#include "disk.hpp"
#include "loose_json.hpp"
#include "manifest.hpp"
#include "show.hpp"

namespace ranklog::standin {
namespace {

Json parsed_object(const std::string& text) {
  const auto json = parse_loose(text);
  return json && json->is_object() ? *json : Json::object();
}

// The config as people write it: without the {"value": ...} around every entry, without "_wandb".
Json plain_config(const Run& run) {
  const Json sent = parsed_object(run.config_text());
  Json config = Json::object();
  for (const auto& [key, entry] : sent.items()) {
    if (key != "_wandb") config[key] = entry.is_object() && entry.contains("value") ? entry["value"] : entry;
  }
  return config;
}

Json last_step(const Run& run) {
  Json last = nullptr;
  for (const RowFacts& row : run.rows()) {
    if (row.step && (last.is_null() || *row.step > last.get<std::int64_t>())) last = *row.step;
  }
  return last;
}

Json run_files(const Run& run) {
  Json files = Json::array();
  for (const std::string& name : run.file_names()) {
    files.push_back({{"name", name}, {"size", fs::file_size(run.file_path(name))}});
  }
  return files;
}

Json run_json(const Run& run, long long now_ms, std::chrono::milliseconds crash_after) {
  const RunFacts& facts = run.facts;
  const auto attribute = [&facts](const char* name) { return facts.attributes.value(name, Json(nullptr)); };
  return {{"id", facts.name},
          {"name", attribute("displayName")},
          {"group", attribute("groupName")},
          {"job_type", attribute("jobType")},
          {"notes", attribute("notes")},
          {"tags", facts.tags},
          {"state", run.state(now_ms, crash_after)},
          {"exit_code", facts.complete ? Json(facts.exit_code) : Json(nullptr)},
          {"history_rows", run.lines(kHistoryFile).count()},
          {"event_rows", run.lines(kEventsFile).count()},
          {"console_lines", run.lines(kConsoleFile).count()},
          {"last_step", last_step(run)},
          {"config", plain_config(run)},
          {"summary", parsed_object(run.summary_text())},
          {"files", run_files(run)},
          {"used_artifacts", facts.used_artifacts},
          {"anomalies", facts.anomalies},
          {"more_anomalies", facts.more_anomalies}};
}

// The paths with sizes, from the manifests as they are.
Json artifact_files(const Artifact& artifact) {
  Json files = Json::array();
  for (const ManifestFacts& manifest : artifact.manifests) {
    if (!manifest.uploaded) continue;
    for (const auto& [path, entry] : read_manifest(artifact, manifest)) {
      files.push_back({{"path", path}, {"size", entry.size}, {"digest", entry.digest}, {"ref", entry.ref}});
    }
  }
  return files;
}

Json artifact_json(const Collection& collection, const Artifact& artifact) {
  return {
      {"id", artifact.id},
      {"name", collection.name},
      {"type", collection.type},
      {"version", artifact.version_name()},
      {"state", artifact.committed ? "COMMITTED" : "PENDING"},
      {"aliases", collection.aliases_of(artifact.id)},
      {"digest", artifact.digest},
      {"size", artifact.size},
      {"files", artifact_files(artifact)},
      {"metadata", artifact.metadata.is_string() ? Json(parsed_object(artifact.metadata)) : Json(nullptr)},
      {"run", artifact.run_name},
      {"history_step", artifact.history_step}};
}

}  // namespace

Json state_json(Store& store, long long now_ms, std::chrono::milliseconds crash_after) {
  Json projects = Json::array();
  for (const auto& [key, project] : store.projects()) {
    Json runs = Json::array();
    for (const auto& [name, run] : project.runs) runs.push_back(run_json(run, now_ms, crash_after));
    Json artifacts = Json::array();
    for (const auto& [name, collection] : project.collections) {
      for (const auto& [number, artifact] : collection.artifacts) {
        artifacts.push_back(artifact_json(collection, artifact));
      }
    }
    projects.push_back(
        {{"entity", project.entity}, {"project", project.name}, {"runs", runs}, {"artifacts", artifacts}});
  }
  return {{"projects", projects}};
}

}  // namespace ranklog::standin
