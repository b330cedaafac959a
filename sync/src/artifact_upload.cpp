#include "artifact_upload.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ranklog/schema/digest.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;

constexpr std::size_t kFilesPerRequest = 25;

std::string short_name(const PlannedArtifact& artifact) {
  return "artifact " + artifact.artifact.name + " (" + artifact.digest.substr(0, 8) + ")";
}

// Fails early and cheaply: nothing of a version is created whose files are gone.
void check_files(const PlannedArtifact& artifact) {
  for (const PlannedArtifactFile& entry : artifact.files) {
    std::error_code failed;
    const std::uint64_t size = std::filesystem::file_size(entry.path, failed);
    if (failed) {
      throw Error(ErrorCode::kDamaged,
                  short_name(artifact) + ": " + entry.path.string() + ": " + failed.message());
    }
    if (size != entry.file.size) {
      throw Error(ErrorCode::kDamaged, short_name(artifact) + ": " + entry.path.string() +
                                           " has changed since it was logged: " + std::to_string(size) +
                                           " bytes instead of " + std::to_string(entry.file.size));
    }
  }
}

NewArtifact describe_artifact(const ArtifactTarget& target, const PlannedArtifact& artifact) {
  NewArtifact out;
  out.run = target.run;
  out.type = artifact.artifact.type;
  out.name = artifact.artifact.name;
  out.digest = artifact.digest;
  out.description = artifact.artifact.description;
  out.metadata_json = artifact.artifact.metadata_json;
  out.aliases = artifact.artifact.aliases;
  if (target.features.contains("ARTIFACT_TAGS")) out.tags = artifact.artifact.tags;
  out.history_step = artifact.artifact.step;
  out.client_id = artifact.client_id;
  out.sequence_client_id = artifact.sequence_client_id;
  return out;
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
      if (!where.url.empty()) put_file(target, where, artifact.files[i]);
      birth_ids.push_back(where.birth_artifact_id.empty() ? artifact_id : where.birth_artifact_id);
    }
  }
  return birth_ids;
}

std::string create_and_commit(const ArtifactTarget& target, const PlannedArtifact& artifact) {
  check_files(artifact);
  const CreatedArtifact created = target.api.create_artifact(describe_artifact(target, artifact));
  if (created.committed) return created.id;
  const std::string manifest_id = target.api.create_manifest(target.run, created, "").id;
  const auto birth_ids = upload_files(target, artifact, created.id, manifest_id);
  const std::string manifest = manifest_json(artifact, birth_ids);
  const auto place = target.api.create_manifest(target.run, created, base64_of_hex(md5_hex(manifest)));
  if (!place.target.url.empty()) put_text(target.http, target.access, place.target, manifest);
  target.api.commit_artifact(created.id, artifact.artifact.name);
  return created.id;
}

void check_upload(const ServerAccess& access, const HttpResponse& response, const std::string& what) {
  if (response.ok()) return;
  if (response.status == 401 || response.status == 403) {
    throw Error(ErrorCode::kServer,
                what + ": the storage refused the upload address (" + describe_failure(response) +
                    "), which may have expired",
                "run the same command again");
  }
  access.refuse(response, what);
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

bool upload_artifact(const ArtifactTarget& target, const PlannedArtifact& artifact) {
  std::string id = target.state.artifact_id(artifact.client_id);
  if (id.empty()) {
    id = create_and_commit(target, artifact);
    // Both at once would be better, but a link that is missing is only made again.
    target.state.save_artifact(artifact.client_id, artifact.artifact.name, id);
    target.state.save_link(artifact.client_id, target.run.run_id);
    return true;
  }
  if (target.state.is_linked(artifact.client_id, target.run.run_id)) return false;
  target.api.use_artifact(target.run, id);
  target.state.save_link(artifact.client_id, target.run.run_id);
  return true;
}

void put_file(const ArtifactTarget& target, const UploadTarget& where, const PlannedArtifactFile& file) {
  HttpRequest request = target.access.put(where.url);
  request.headers = where.headers;
  request.file = FileBody{file.path, file.file.size, file.file.md5};
  request.while_waiting = target.while_waiting;
  std::uint64_t counted = 0;  // a repeated upload starts again from the first byte
  request.on_sent = [&](std::uint64_t sent) {
    if (sent <= counted) return;
    target.on_bytes(sent - counted);
    counted = sent;
  };
  const std::string what = "uploading " + file.file.name;
  check_upload(target.access, target.http.send(Endpoint::kUpload, request, what), what);
}

void put_text(HttpClient& http, const ServerAccess& access, const UploadTarget& where,
              const std::string& text) {
  HttpRequest request = access.put(where.url);
  request.headers = where.headers;
  request.body = text;
  const std::string what = "uploading " + where.name;
  check_upload(access, http.send(Endpoint::kUpload, request, what), what);
}

}  // namespace ranklog::sync
