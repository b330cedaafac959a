// The moment a PENDING artifact becomes a version.

#include "disk.hpp"
#include "manifest.hpp"
#include "ranklog/schema/digest.hpp"
#include "schema.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

void check_manifests(const Artifact& artifact) {
  bool any = false;
  for (const ManifestFacts& manifest : artifact.manifests) {
    if (manifest.digest.empty()) continue;
    any = true;
    const fs::path path = artifact.folder / safe_relative_path(manifest.name);
    if (!manifest.uploaded || !fs::exists(path)) {
      throw ApiError(400, "cannot commit: manifest " + manifest.name + " was never uploaded");
    }
    if (base64_of_hex(digest_file(path).md5) != manifest.digest) {
      throw ApiError(400, "cannot commit: manifest " + manifest.name + " is not what its digest says");
    }
  }
  if (!any) throw ApiError(400, "cannot commit: the artifact has no manifest with a digest");
}

void check_file(const Project& project, const Artifact& artifact, const std::string& path,
                const ManifestEntry& entry) {
  const auto content = project.contents.find(hex_of(base64_decode(entry.digest).value_or("")));
  if (content == project.contents.end()) {
    throw ApiError(400, "cannot commit: \"" + path + "\" of the manifest was never uploaded");
  }
  if (content->second.size != entry.size) {
    throw ApiError(400, "cannot commit: \"" + path + "\" has " + std::to_string(content->second.size) +
                            " bytes, the manifest says " + std::to_string(entry.size));
  }
  const auto announced = artifact.files.find(path);
  const bool inherited = !entry.birth_artifact_id.empty() && entry.birth_artifact_id != artifact.id;
  if (!inherited && (announced == artifact.files.end() || announced->second != entry.digest)) {
    throw ApiError(400, "cannot commit: \"" + path + "\" was not announced by createArtifactFiles");
  }
}

void check_digest(const Artifact& artifact, const ManifestEntries& entries) {
  // What the digest of an incremental or distributed artifact covers is not known exactly.
  for (const ManifestFacts& manifest : artifact.manifests) {
    if (manifest.type != "FULL") return;
  }
  const std::string digest = logical_digest(entries);
  if (digest != artifact.digest) {
    throw ApiError(400, "cannot commit: createArtifact was told the digest " + artifact.digest +
                            ", the manifest makes " + digest);
  }
}

// So that a person finds the files under their names. The bytes are there once.
void link_files(const Project& project, const Artifact& artifact, const ManifestEntries& entries) {
  for (const auto& [path, entry] : entries) {
    if (!entry.ref.empty()) continue;
    const fs::path from = project.content_path(hex_of(base64_decode(entry.digest).value_or("")));
    const fs::path to = artifact.folder / "files" / safe_relative_path(path);
    make_folder(to.parent_path());
    std::error_code error;
    fs::create_hard_link(from, to, error);  // some file systems have no links: content/ is what counts
  }
}

void become_version(ArtifactPlace place, const ManifestEntries& entries, long long now_ms) {
  Artifact& artifact = *place.artifact;
  artifact.version = place.collection->next_version();
  const fs::path folder = place.collection->folder / artifact.version_name();
  move_file(artifact.folder, folder);
  artifact.folder = folder;
  artifact.committed = true;
  artifact.updated_at_ms = now_ms;
  artifact.file_count = entries.size();
  artifact.size = 0;
  for (const auto& [path, entry] : entries) artifact.size += entry.size;
  artifact.save();
  for (const std::string& alias : artifact.aliases) place.collection->aliases[alias] = artifact.id;
  place.collection->save();
}

}  // namespace

void commit_artifact(const Scope& scope, ArtifactPlace place) {
  check_manifests(*place.artifact);
  const ManifestEntries entries = entries_of(scope, *place.artifact);
  for (const auto& [path, entry] : entries) {
    if (entry.ref.empty()) check_file(*place.project, *place.artifact, path, entry);
  }
  check_digest(*place.artifact, entries);
  become_version(place, entries, scope.now());
  link_files(*place.project, *place.artifact, entries);
}

}  // namespace ranklog::standin
