#pragma once
// Artifact versions and their collections as the server holds them, and their folders:
//   artifacts/<collection>/collection.json
//   artifacts/<collection>/v0/{artifact.json, <manifest files>, files/...}    once committed
//   artifacts/<collection>/pending-<number>/...                              before

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api_error.hpp"

namespace ranklog::standin {

struct ManifestFacts {
  std::string id;
  std::string name;              // the file's
  std::string type;              // FULL, INCREMENTAL or PATCH
  std::string digest;            // base64 MD5 of the file; empty until the client knows it
  std::string base_artifact_id;  // of an incremental one; may be empty
  bool uploaded = false;
};

struct Artifact {
  long long number = 0;  // of all artifacts that this server ever made
  std::string id;        // the opaque node ID
  std::string collection;
  std::string type;
  std::string digest;  // logical, hex
  std::string digest_algorithm;
  bool committed = false;
  std::optional<int> version;  // given at commit
  Json description;
  Json metadata;                     // JSON text or null
  std::vector<std::string> aliases;  // asked for at creation; they move at commit
  std::vector<std::string> tags;
  std::string client_id;
  std::string sequence_client_id;
  std::string distributed_id;
  Json run_name;  // text or null
  Json history_step;
  Json ttl_seconds;
  long long created_at_ms = 0;
  long long updated_at_ms = 0;
  std::vector<ManifestFacts> manifests;
  std::map<std::string, std::string> files;  // path to base64 MD5, as createArtifactFiles announced them
  std::uint64_t size = 0;                    // known at commit
  std::uint64_t file_count = 0;
  std::filesystem::path folder;

  [[nodiscard]] ManifestFacts* manifest(const std::string& manifest_id);
  [[nodiscard]] std::string version_name() const;  // "v3", or "pending"
  void save() const;
  static Artifact load(const std::filesystem::path& folder);
};

struct Collection {
  std::string name;
  std::string type;
  std::string id;
  long long created_at_ms = 0;
  std::map<std::string, std::string> aliases;  // to artifact IDs
  std::map<long long, Artifact> artifacts;     // by number, so in order of creation
  std::filesystem::path folder;

  [[nodiscard]] Artifact* latest();  // the highest committed version, or null
  [[nodiscard]] int next_version() const;
  [[nodiscard]] std::vector<std::string> aliases_of(const std::string& artifact_id) const;
  // By alias or "v<number>"; null if there is none.
  [[nodiscard]] Artifact* find(const std::string& alias_or_version);
  void save() const;
  static Collection load(const std::filesystem::path& folder);
};

}  // namespace ranklog::standin
