#pragma once
// Artifact versions to the server: each once, in order, whatever strategy asks for them.

#include <functional>
#include <set>
#include <string>

#include "ranklog/sync/http_client.hpp"
#include "ranklog/sync/plan.hpp"
#include "upload_state.hpp"
#include "wandb_api.hpp"

namespace ranklog::sync {

struct ArtifactTarget {
  WandbApi& api;
  HttpClient& http;
  const ServerAccess& access;
  UploadState& state;
  const std::set<std::string>& features;
  RunAddress run;                               // that owns what is new and uses what is there already
  std::function<void()> while_waiting;          // keeps the run alive
  std::function<void(std::uint64_t)> on_bytes;  // told how many more bytes of files have gone out; any thread
};

// The manifest of an artifact as it is uploaded; `birth_ids`: in the order of artifact.files.
[[nodiscard]] std::string manifest_json(const PlannedArtifact& artifact,
                                        const std::vector<std::string>& birth_ids);

// Creates, uploads and commits one version, or links the run to it if it is there. True: bytes or a link were
// sent; false: all was there. Throws Error: kDamaged if a local file is not what was logged.
bool upload_artifact(const ArtifactTarget& target, const PlannedArtifact& artifact);

// PUTs one file or text to the address that the server gave out. Throws as HttpClient::send(), or Error
// (kServer).
void put_file(const ArtifactTarget& target, const UploadTarget& where, const PlannedArtifactFile& file);
void put_text(HttpClient& http, const ServerAccess& access, const UploadTarget& where,
              const std::string& text);

}  // namespace ranklog::sync
