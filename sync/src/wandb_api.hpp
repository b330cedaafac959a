#pragma once
// The calls of W&B's API that an upload needs, as functions (protocol page sections 2, 6 and 7).

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graphql.hpp"

namespace ranklog::sync {

struct Viewer {
  std::string entity;    // default entity; may be empty
  std::string username;  // whose key it is, for messages
};

struct RunAddress {
  std::string entity;
  std::string project;
  std::string run_id;
};

// What the server holds of a run.
struct RemoteRun {
  std::string storage_id;
  std::uint64_t history_lines = 0;
  std::string config;  // JSON text
  std::vector<std::string> tags;
};

// What is empty is left unchanged at the server.
struct RunHeader {
  std::string storage_id;  // empty: not known yet
  std::string run_id;
  std::string entity;  // empty: the key's default
  std::string project;
  std::string display_name, group, job_type, notes, commit, repository, host, program;
  std::vector<std::string> tags;
  std::string config;  // JSON text, the whole document
};

struct UpsertedRun {
  std::string storage_id;
  RunAddress address;  // names as the server spells them: those to use from now on
};

// Where to put one file.
struct UploadTarget {
  std::string name;
  std::string url;  // empty: the server has these bytes already
  std::vector<std::pair<std::string, std::string>> headers;
  std::string birth_artifact_id;  // artifact files only
};

struct NewArtifact {
  RunAddress run;
  std::string type, name, digest;  // digest: of the manifest, hex
  std::string description, metadata_json;
  std::vector<std::string> aliases, tags;  // "latest" only if it is among them
  std::optional<std::int64_t> history_step;
  std::string client_id, sequence_client_id;
};

struct CreatedArtifact {
  std::string id;
  bool committed = false;
  std::string latest_id;  // of the sequence's newest version; may be empty
};

struct ArtifactFileSpec {
  std::string name;
  std::string md5;  // base64
};

// Every call throws RefusedError for a final "no" and what HttpClient::send() throws.
class WandbApi {
 public:
  WandbApi(HttpClient& http, const ServerAccess& access) : graphql_(http, access), access_(access) {}

  // Throws Error (kUnauthorized) if the key belongs to nobody.
  [[nodiscard]] Viewer viewer();
  // Names of the features that are on; none on servers that cannot say.
  [[nodiscard]] std::set<std::string> features();

  // Empty: there is no such run, or no such project.
  [[nodiscard]] std::optional<RemoteRun> find_run(const RunAddress& run);
  // Refusals name entity, project and `user`.
  [[nodiscard]] UpsertedRun upsert_run(const RunHeader& header, const std::string& user);
  [[nodiscard]] std::vector<UploadTarget> create_run_files(const RunAddress& run,
                                                           const std::vector<std::string>& names);

  [[nodiscard]] CreatedArtifact create_artifact(const NewArtifact& artifact);
  // Id of the manifest; with a digest also where to upload it.
  struct Manifest {
    std::string id;
    UploadTarget target;
  };
  [[nodiscard]] Manifest create_manifest(const RunAddress& run, const CreatedArtifact& artifact,
                                         const std::string& md5_base64);
  // In the order of `files`.
  [[nodiscard]] std::vector<UploadTarget> create_artifact_files(const std::string& artifact_id,
                                                                const std::string& manifest_id,
                                                                const std::vector<ArtifactFileSpec>& files);
  void commit_artifact(const std::string& artifact_id, const std::string& name);
  void use_artifact(const RunAddress& run, const std::string& artifact_id);
  // The artifact that was made with this client id; empty: none, or the server cannot say.
  [[nodiscard]] std::string artifact_of_client(const std::string& client_id);
  void add_aliases(const std::string& artifact_id, const std::string& name,
                   const std::vector<std::string>& aliases);
  void update_metadata(const std::string& artifact_id, const std::string& name,
                       const std::string& metadata_json);

 private:
  GraphqlClient graphql_;
  const ServerAccess& access_;
};

}  // namespace ranklog::sync
