#pragma once
// Which W&B runs an experiment becomes under a strategy.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/experiment.hpp"
#include "ranklog/schema/identity.hpp"

namespace ranklog::sync {

struct PlanOptions {
  std::optional<Strategy> strategy;  // empty: what the experiment recorded, else main
  std::optional<int> main_rank;      // the rank that strategy main takes; empty: 0
  std::string entity;                // empty: what the files say, else `default_entity`
  std::string default_entity;        // of the environment or settings file; empty: the server's
  std::string project;               // empty: what the files say
  std::string run_id;                // only for a plan of one run
  std::string group;                 // empty: what the files say, else the experiment's id
  std::string job_type;              // empty: what the files say
  std::int64_t now_ns = 0;           // Unix
  std::int64_t stale_seconds = 600;  // silence after which a rank counts as crashed
};

struct PlannedRun {
  std::string id;
  std::string name;
  std::string group;
  std::string job_type;
  int rank = 0;  // whose history it carries
  int node = 0;
  std::vector<int> ranks;  // that it stands for: all, the node's, or its own
  RunState state = RunState::kRunning;
  int exit_code = 0;
  // The writer may still add to its newest step, so that one is held back: no end record, no later attempt,
  // its process not known to be gone, and not silent for hours.
  bool newest_step_open = false;
  std::uint64_t logged_rows = 0;
  bool owns_artifacts = false;  // one run of an experiment does
};

struct PlannedArtifactFile {
  ArtifactFile file;
  std::filesystem::path path;
};

// One version to be. The same whatever the strategy.
struct PlannedArtifact {
  Artifact artifact;
  std::vector<PlannedArtifactFile> files;  // by name
  std::string digest;                      // of W&B's manifest: 32 hex digits
  std::string client_id, sequence_client_id;
  std::uint64_t bytes = 0;
  bool removed = false;  // its files are gone, as the log says: what is not up already stays missing
};

// An input, a rank or an experiment that cannot go up, in words.
struct PlanProblem {
  ErrorCode code = ErrorCode::kDamaged;
  std::string message;
};

struct PlannedExperiment {
  Experiment experiment;
  Strategy strategy = Strategy::kMain;
  std::string entity;   // empty: the server's default
  std::string project;  // at the server
  std::vector<PlannedRun> runs;
  std::vector<PlannedArtifact> artifacts;  // in the order in which their versions are made
  std::vector<int> missing_ranks;
  std::vector<PlanProblem> problems;  // of this experiment
  std::vector<std::string> warnings;  // that make nothing incomplete
};

struct Plan {
  std::vector<PlannedExperiment> experiments;
  std::vector<PlanProblem> problems;  // files that belong to no experiment
};

// Opens every rank file's header; reads no rows. What W&B would refuse (names, tags, ids, one id for two
// runs) becomes a problem of its experiment, which then has no runs. Throws Error: kUsage (a run id for
// several runs), and what scan() throws.
[[nodiscard]] Plan make_plan(std::span<const std::filesystem::path> inputs, const PlanOptions& options);

// <slug of at most 32>-<main|node|all>-r<rank>-<8 hex digits of SHA-256 of project/experiment>
[[nodiscard]] std::string derived_run_id(const std::string& project, const std::string& experiment,
                                         Strategy strategy, int rank);

// The ranks whose history makes a run: strategy main {main_rank}, node each node's local rank 0, all every
// one. Only ranks that were found.
[[nodiscard]] std::vector<int> chosen_ranks(const Experiment& experiment, Strategy strategy, int main_rank);

// What stands for everything that a run is made of; equal as long as there is nothing new to upload.
[[nodiscard]] std::string input_fingerprint(const PlannedExperiment& experiment, const PlannedRun& run);

}  // namespace ranklog::sync
