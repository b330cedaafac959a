#include "manifest.hpp"

#include "disk.hpp"
#include "ranklog/schema/digest.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

ManifestEntry read_entry(const std::string& path, const Json& json) {
  if (!json.is_object()) throw ApiError(400, "manifest entry \"" + path + "\" is not an object");
  static_cast<void>(safe_relative_path(path));
  ManifestEntry entry;
  entry.digest = required_text(json, "digest");
  entry.ref = text_or(json, "ref", "");
  entry.birth_artifact_id = text_or(json, "birthArtifactID", "");
  const Json size = json.value("size", Json(0));
  if (!size.is_number_unsigned()) throw ApiError(400, "manifest entry \"" + path + "\" has no right size");
  entry.size = size;
  return entry;
}

}  // namespace

ManifestEntries read_manifest(const Artifact& artifact, const ManifestFacts& manifest) {
  const auto text = read_text(artifact.folder / safe_relative_path(manifest.name));
  if (!text) throw ApiError(400, "manifest " + manifest.name + " was never uploaded");
  const Json json = Json::parse(*text, nullptr, false);
  const bool right = json.is_object() && json.value("version", Json(0)) == 1 &&
                     json.value("storagePolicy", Json("")) == "wandb-storage-policy-v1" &&
                     json.contains("contents") && json["contents"].is_object();
  if (!right) throw ApiError(400, "manifest " + manifest.name + " is not a version 1 manifest");
  ManifestEntries entries;
  for (const auto& [path, entry] : json["contents"].items()) entries[path] = read_entry(path, entry);
  return entries;
}

ManifestEntries entries_of(const Scope& scope, const Artifact& artifact) {
  ManifestEntries all;
  for (const ManifestFacts& manifest : artifact.manifests) {
    if (manifest.digest.empty()) continue;  // announced, then replaced by one with a digest
    if (manifest.type == "INCREMENTAL" && !manifest.base_artifact_id.empty()) {
      const ArtifactPlace base = require_artifact(scope, manifest.base_artifact_id);
      for (auto& [path, entry] : entries_of(scope, *base.artifact)) all[path] = entry;
    }
    for (auto& [path, entry] : read_manifest(artifact, manifest)) all[path] = entry;
  }
  return all;
}

std::string logical_digest(const ManifestEntries& entries) {
  std::string text = "wandb-artifact-manifest-v1\n";
  for (const auto& [path, entry] : entries) text.append(path).append(":").append(entry.digest).append("\n");
  return md5_hex(text);
}

std::string checked_md5(const std::string& md5) {
  const auto bytes = base64_decode(md5);
  if (!bytes || bytes->size() != 16) throw ApiError(400, "\"" + md5 + "\" is not a base64 MD5");
  return hex_of(*bytes);
}

void check_pending(const Artifact& artifact) {
  if (artifact.committed) throw ApiError(400, "artifact " + artifact.id + " is committed already");
}

}  // namespace ranklog::standin
