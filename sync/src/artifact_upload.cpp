#include "artifact_upload.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "artifact_plan.hpp"
#include "ranklog/schema/digest.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;

constexpr std::size_t kFilesPerRequest = 25;

// "latest" is ours to give, and only to the newest.
std::vector<std::string> aliases_of(const PlannedArtifact& artifact, bool newest) {
  std::vector<std::string> aliases;
  if (newest) aliases.emplace_back("latest");
  for (const std::string& alias : artifact.artifact.aliases) {
    if (alias != "latest") aliases.push_back(alias);
  }
  return aliases;
}

// Stands for what can change about a version whose content is up.
std::string description_hash(const PlannedArtifact& artifact) {
  std::string text = artifact.artifact.metadata_json + '\n';
  for (const std::string& alias : aliases_of(artifact, false)) text += alias + '\n';
  return sha256_hex(text);
}

NewArtifact describe_artifact(const ArtifactTarget& target, const PlannedArtifact& artifact, bool newest) {
  NewArtifact out;
  out.run = target.run;
  out.type = artifact.artifact.type;
  out.name = artifact.artifact.name;
  out.digest = artifact.digest;
  out.description = artifact.artifact.description;
  out.metadata_json = artifact.artifact.metadata_json;
  out.aliases = aliases_of(artifact, newest);
  if (target.features.contains("ARTIFACT_TAGS")) out.tags = artifact.artifact.tags;
  out.history_step = artifact.artifact.step;
  out.client_id = artifact.client_id;
  out.sequence_client_id = artifact.sequence_client_id;
  return out;
}

void put_file(const ArtifactTarget& target, const UploadTarget& where, const PlannedArtifactFile& file,
              const std::function<UploadTarget()>& renew) {
  HttpRequest body;
  body.file = FileBody{file.path, file.file.size, file.file.md5};
  body.while_waiting = target.while_waiting;
  std::uint64_t counted = 0;  // a repeated upload starts again from the first byte
  body.on_sent = [&](std::uint64_t sent) {
    if (sent <= counted) return;
    target.on_bytes(sent - counted);
    counted = sent;
  };
  target.storage.put(where, body, renew);
}

// Returns the artifact in which each file was born, in the order of the files.
std::vector<std::string> upload_files(const ArtifactTarget& target, const PlannedArtifact& artifact,
                                      const std::string& artifact_id, const std::string& manifest_id) {
  std::vector<std::string> birth_ids;
  for (std::size_t begin = 0; begin < artifact.files.size(); begin += kFilesPerRequest) {
    const std::size_t end = std::min(artifact.files.size(), begin + kFilesPerRequest);
    std::vector<ArtifactFileSpec> specs;
    for (std::size_t i = begin; i < end; ++i) {
      specs.push_back({artifact.files[i].file.name, base64_of_hex(artifact.files[i].file.md5)});
    }
    const auto targets = target.api.create_artifact_files(artifact_id, manifest_id, specs);
    for (std::size_t i = begin; i < end; ++i) {
      const UploadTarget& where = targets[i - begin];
      put_file(target, where, artifact.files[i], [&] {
        return target.api.create_artifact_files(artifact_id, manifest_id, {specs[i - begin]}).front();
      });
      birth_ids.push_back(where.birth_artifact_id.empty() ? artifact_id : where.birth_artifact_id);
    }
  }
  return birth_ids;
}

void upload_content(const ArtifactTarget& target, const PlannedArtifact& artifact,
                    const CreatedArtifact& created) {
  const std::string manifest_id = target.api.create_manifest(target.run, created, "").id;
  const auto birth_ids = upload_files(target, artifact, created.id, manifest_id);
  HttpRequest manifest;
  manifest.body = manifest_json(artifact, birth_ids);
  const auto ask = [&, md5 = base64_of_hex(md5_hex(manifest.body))] {
    return target.api.create_manifest(target.run, created, md5).target;
  };
  target.storage.put(ask(), manifest, ask);
  target.api.commit_artifact(created.id, artifact.artifact.name);
}

std::string create_and_commit(const ArtifactTarget& target, const PlannedArtifact& artifact, bool newest) {
  check_files(artifact);
  const CreatedArtifact created = target.api.create_artifact(describe_artifact(target, artifact, newest));
  if (!created.committed) {
    upload_content(target, artifact, created);
    return created.id;
  }
  // The content was there: of a push of ours that was cut off, or of another run, which this one then uses.
  if (target.api.artifact_of_client(artifact.client_id) != created.id) {
    target.api.use_artifact(target.run, created.id);
  }
  const auto aliases = aliases_of(artifact, newest);
  if (!aliases.empty()) target.api.add_aliases(created.id, artifact.artifact.name, aliases);
  return created.id;
}

// Aliases and metadata that have come since the content went up.
void update_description(const ArtifactTarget& target, const PlannedArtifact& artifact,
                        const std::string& artifact_id) {
  const std::string& name = artifact.artifact.name;
  const auto aliases = aliases_of(artifact, false);
  if (!aliases.empty()) target.api.add_aliases(artifact_id, name, aliases);
  // What another run says about its artifact is its own.
  const bool ours = target.api.artifact_of_client(artifact.client_id) == artifact_id;
  if (ours && !artifact.artifact.metadata_json.empty()) {
    target.api.update_metadata(artifact_id, name, artifact.artifact.metadata_json);
  }
}

// Faults of one item that say nothing about the rest.
bool concerns_one_item(ErrorCode code) {
  return code != ErrorCode::kTemporary && code != ErrorCode::kInterrupted;
}

}  // namespace

std::string manifest_json(const PlannedArtifact& artifact, const std::vector<std::string>& birth_ids) {
  json contents = json::object();
  for (std::size_t i = 0; i < artifact.files.size(); ++i) {
    const ArtifactFile& file = artifact.files[i].file;
    contents[file.name] = {
        {"digest", base64_of_hex(file.md5)}, {"birthArtifactID", birth_ids[i]}, {"size", file.size}};
  }
  const json manifest = {{"version", 1},
                         {"storagePolicy", "wandb-storage-policy-v1"},
                         {"storagePolicyConfig", {{"storageLayout", "V2"}}},
                         {"contents", contents}};
  return manifest.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool upload_artifact(const ArtifactTarget& target, const PlannedArtifact& artifact, bool newest) {
  const std::string description = description_hash(artifact);
  std::string id = target.state.artifact_id(artifact.client_id);
  if (id.empty()) {
    id = create_and_commit(target, artifact, newest);
    // Both at once would be better, but a link that is missing is only made again.
    target.state.save_artifact(artifact.client_id, artifact.artifact.name, id, description);
    target.state.save_link(artifact.client_id, target.run.run_id);
    return true;
  }
  bool sent = false;
  if (target.state.artifact_description(artifact.client_id) != description) {
    update_description(target, artifact, id);
    target.state.save_artifact(artifact.client_id, artifact.artifact.name, id, description);
    sent = true;
  }
  if (target.state.is_linked(artifact.client_id, target.run.run_id)) return sent;
  target.api.use_artifact(target.run, id);
  target.state.save_link(artifact.client_id, target.run.run_id);
  return true;
}

ArtifactCounts upload_artifacts(const ArtifactTarget& target, const std::vector<PlannedArtifact>& artifacts,
                                std::vector<PlanProblem>& faults) {
  std::map<std::string, std::size_t> newest;  // index by name
  for (std::size_t i = 0; i < artifacts.size(); ++i) newest[artifacts[i].artifact.name] = i;
  std::set<std::string> waiting;
  ArtifactCounts counts;
  for (std::size_t i = 0; i < artifacts.size(); ++i) {
    const std::string& name = artifacts[i].artifact.name;
    if (artifacts[i].removed && target.state.artifact_id(artifacts[i].client_id).empty()) {
      ++counts.removed;
      continue;
    }
    if (waiting.contains(name)) continue;
    try {
      if (upload_artifact(target, artifacts[i], newest[name] == i)) ++counts.sent;
    } catch (const Error& error) {
      if (!concerns_one_item(error.code())) throw;
      if (error.code() != ErrorCode::kDamaged) waiting.insert(name);
      const bool holds_up = waiting.contains(name) && newest[name] != i;
      std::string why = error.what();
      if (holds_up) why += "; later versions of " + name + " wait for it";
      faults.push_back({error.code(), std::move(why)});
    }
  }
  return counts;
}

}  // namespace ranklog::sync
