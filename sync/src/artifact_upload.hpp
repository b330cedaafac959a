#pragma once
// Artifact versions to the server: each once, in order, whatever strategy asks for them.

#include <functional>
#include <set>
#include <string>

#include "ranklog/sync/http_client.hpp"
#include "ranklog/sync/plan.hpp"
#include "storage.hpp"
#include "upload_state.hpp"
#include "wandb_api.hpp"

namespace ranklog::sync {

struct ArtifactTarget {
  WandbApi& api;
  Storage storage;
  UploadState& state;
  const std::set<std::string>& features;
  RunAddress run;                               // that owns what is new and uses what is there already
  std::function<void()> while_waiting;          // keeps the run alive
  std::function<void(std::uint64_t)> on_bytes;  // told how many more bytes of files have gone out; any thread
};

// The manifest of an artifact as it is uploaded; `birth_ids`: in the order of artifact.files.
[[nodiscard]] std::string manifest_json(const PlannedArtifact& artifact,
                                        const std::vector<std::string>& birth_ids);

// Creates, uploads and commits one version, or links the run to it if it is there, and tells the server of
// aliases and metadata that have come since. `newest`: no later version of that name is planned; only that
// one becomes "latest". True: something was sent; false: all was there. Throws Error: kDamaged if a local
// file is not what was logged.
bool upload_artifact(const ArtifactTarget& target, const PlannedArtifact& artifact, bool newest);

// All versions in order, so that the server numbers them in that order: after one that failed those of the
// same name wait for the next push, unless its own files are damaged, which no waiting mends. Faults are
// appended; what concerns more than one artifact is thrown.
struct ArtifactCounts {
  std::uint64_t sent = 0;
  std::uint64_t removed = 0;  // passed over: removed before they were up
};
[[nodiscard]] ArtifactCounts upload_artifacts(const ArtifactTarget& target,
                                              const std::vector<PlannedArtifact>& artifacts,
                                              std::vector<PlanProblem>& faults);

}  // namespace ranklog::sync
