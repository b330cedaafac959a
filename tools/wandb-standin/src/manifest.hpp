#pragma once
// The contents that an artifact's manifests promise.

#include <map>
#include <string>

#include "service.hpp"

namespace ranklog::standin {

struct ManifestEntry {
  std::string digest;  // base64 MD5 for files; anything for references
  std::string ref;     // empty for files
  std::string birth_artifact_id;
  std::uint64_t size = 0;
};

using ManifestEntries = std::map<std::string, ManifestEntry>;  // by path

// Of one uploaded manifest file. Throws ApiError(400) if it is not a version 1 manifest.
[[nodiscard]] ManifestEntries read_manifest(const Artifact& artifact, const ManifestFacts& manifest);

// All manifests of the artifact put together: an incremental one adds to its base, patches add to each other.
[[nodiscard]] ManifestEntries entries_of(const Scope& scope, const Artifact& artifact);

// The logical digest: hex MD5 over the sorted paths and digests.
[[nodiscard]] std::string logical_digest(const ManifestEntries& entries);

// The hex of a base64 MD5. Throws ApiError(400) if it is none.
[[nodiscard]] std::string checked_md5(const std::string& md5);
// Throws ApiError(400) if the artifact can take no more.
void check_pending(const Artifact& artifact);

}  // namespace ranklog::standin
