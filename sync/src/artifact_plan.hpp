#pragma once
// The artifact versions of an experiment: the same set in the same order whatever the strategy.

#include <map>
#include <string>
#include <vector>

#include "ranklog/sync/plan.hpp"

namespace ranklog::sync {

// What several ranks recorded alike is one version. Logged again after another content of that name, it is a
// new version; logged again at once, it is the same.
[[nodiscard]] std::vector<PlannedArtifact> plan_artifacts(const Experiment& experiment);

// Fails early and cheaply: throws Error (kDamaged) for a file that is gone or has another size than was
// logged, and Error (kServer) for one that is larger than a single PUT takes.
void check_files(const PlannedArtifact& artifact);

// W&B's digest of an artifact: hex MD5 over its entries sorted by path (protocol page 7.3).
[[nodiscard]] std::string manifest_digest(const std::map<std::string, std::string>& md5_base64_by_path);

// 128 characters of [a-z0-9] that follow from `seed` alone.
[[nodiscard]] std::string deterministic_client_id(const std::string& seed);

}  // namespace ranklog::sync
