#include "artifact.hpp"

#include <algorithm>

#include "disk.hpp"
#include "ranklog/schema/error.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

Json to_json(const ManifestFacts& manifest) {
  return {{"id", manifest.id},
          {"name", manifest.name},
          {"type", manifest.type},
          {"digest", manifest.digest},
          {"uploaded", manifest.uploaded},
          {"base_artifact_id", manifest.base_artifact_id}};
}

ManifestFacts manifest_from_json(const Json& json) {
  return {
      json.at("id"),      json.at("name"), json.at("type"), json.at("digest"), json.at("base_artifact_id"),
      json.at("uploaded")};
}

Json to_json(const Artifact& artifact) {
  Json manifests = Json::array();
  for (const ManifestFacts& manifest : artifact.manifests) manifests.push_back(to_json(manifest));
  return {{"number", artifact.number},
          {"id", artifact.id},
          {"collection", artifact.collection},
          {"type", artifact.type},
          {"digest", artifact.digest},
          {"digest_algorithm", artifact.digest_algorithm},
          {"state", artifact.committed ? "COMMITTED" : "PENDING"},
          {"version", artifact.version ? Json(*artifact.version) : Json(nullptr)},
          {"description", artifact.description},
          {"metadata", artifact.metadata},
          {"requested_aliases", artifact.aliases},
          {"tags", artifact.tags},
          {"client_id", artifact.client_id},
          {"sequence_client_id", artifact.sequence_client_id},
          {"distributed_id", artifact.distributed_id},
          {"run", artifact.run_name},
          {"history_step", artifact.history_step},
          {"ttl_seconds", artifact.ttl_seconds},
          {"created_at", format_time(artifact.created_at_ms)},
          {"updated_at", format_time(artifact.updated_at_ms)},
          {"manifests", manifests},
          {"files", artifact.files},
          {"size", artifact.size},
          {"file_count", artifact.file_count}};
}

Artifact artifact_from_json(const Json& json) {
  Artifact artifact;
  artifact.number = json.at("number");
  artifact.id = json.at("id");
  artifact.collection = json.at("collection");
  artifact.type = json.at("type");
  artifact.digest = json.at("digest");
  artifact.digest_algorithm = json.at("digest_algorithm");
  artifact.committed = json.at("state") == "COMMITTED";
  if (!json.at("version").is_null()) artifact.version = json.at("version").get<int>();
  artifact.description = json.at("description");
  artifact.metadata = json.at("metadata");
  artifact.aliases = json.at("requested_aliases");
  artifact.tags = json.at("tags");
  artifact.client_id = json.at("client_id");
  artifact.sequence_client_id = json.at("sequence_client_id");
  artifact.distributed_id = json.at("distributed_id");
  artifact.run_name = json.at("run");
  artifact.history_step = json.at("history_step");
  artifact.ttl_seconds = json.at("ttl_seconds");
  artifact.created_at_ms = parse_time(json.at("created_at")).value_or(0);
  artifact.updated_at_ms = parse_time(json.at("updated_at")).value_or(0);
  for (const Json& manifest : json.at("manifests"))
    artifact.manifests.push_back(manifest_from_json(manifest));
  artifact.files = json.at("files");
  artifact.size = json.at("size");
  artifact.file_count = json.at("file_count");
  return artifact;
}

}  // namespace

ManifestFacts* Artifact::manifest(const std::string& manifest_id) {
  const auto found = std::find_if(manifests.begin(), manifests.end(),
                                  [&](const ManifestFacts& one) { return one.id == manifest_id; });
  return found == manifests.end() ? nullptr : &*found;
}

std::string Artifact::version_name() const {
  return version ? "v" + std::to_string(*version) : "pending";
}

void Artifact::save() const {
  write_json(folder / "artifact.json", to_json(*this));
}

Artifact Artifact::load(const std::filesystem::path& folder) {
  try {
    Artifact artifact = artifact_from_json(read_json(folder / "artifact.json").value());
    artifact.folder = folder;
    return artifact;
  } catch (const std::exception& problem) {
    throw Error(ErrorCode::kDamaged,
                (folder / "artifact.json").string() + " cannot be read: " + problem.what());
  }
}

Artifact* Collection::latest() {
  Artifact* best = nullptr;
  for (auto& [number, artifact] : artifacts) {
    if (artifact.committed && (best == nullptr || artifact.version > best->version)) best = &artifact;
  }
  return best;
}

int Collection::next_version() const {
  int next = 0;
  for (const auto& [number, artifact] : artifacts) {
    if (artifact.version) next = std::max(next, *artifact.version + 1);
  }
  return next;
}

std::vector<std::string> Collection::aliases_of(const std::string& artifact_id) const {
  std::vector<std::string> names;
  for (const auto& [alias, target] : aliases) {
    if (target == artifact_id) names.push_back(alias);
  }
  return names;
}

Artifact* Collection::find(const std::string& alias_or_version) {
  const auto alias = aliases.find(alias_or_version);
  for (auto& [number, artifact] : artifacts) {
    if (alias != aliases.end() ? artifact.id == alias->second : artifact.version_name() == alias_or_version) {
      return artifact.committed ? &artifact : nullptr;
    }
  }
  return nullptr;
}

void Collection::save() const {
  write_json(folder / "collection.json", {{"name", name},
                                          {"type", type},
                                          {"id", id},
                                          {"created_at", format_time(created_at_ms)},
                                          {"aliases", aliases}});
}

Collection Collection::load(const std::filesystem::path& folder) {
  Collection collection;
  collection.folder = folder;
  try {
    const Json json = read_json(folder / "collection.json").value();
    collection.name = json.at("name");
    collection.type = json.at("type");
    collection.id = json.at("id");
    collection.created_at_ms = parse_time(json.at("created_at")).value_or(0);
    collection.aliases = json.at("aliases");
  } catch (const std::exception& problem) {
    throw Error(ErrorCode::kDamaged,
                (folder / "collection.json").string() + " cannot be read: " + problem.what());
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    Artifact artifact = Artifact::load(entry.path());
    collection.artifacts.emplace(artifact.number, std::move(artifact));
  }
  return collection;
}

}  // namespace ranklog::standin
