#pragma once
// A plan with what it will cost, as a table for people and as JSON for programs.

#include <cstdint>
#include <string>
#include <vector>

#include "ranklog/sync/plan.hpp"
#include "ranklog/sync/stop.hpp"

namespace ranklog::sync {

struct RunEstimate {
  std::uint64_t rows = 0;        // log() calls
  std::uint64_t steps = 0;       // history lines
  std::uint64_t bytes = 0;       // of history
  std::uint64_t superseded = 0;  // rows that a later attempt replaced
  std::uint64_t requests = 0;    // of a first upload, artifacts included
  std::uint64_t artifacts = 0;
  std::uint64_t artifact_bytes = 0;
  std::vector<std::string> warnings;  // where W&B's guidance is exceeded
  std::vector<PlanProblem> problems;  // what will be missing of it
  bool goes_up = false;               // false: it has nothing yet, or nothing of it can be read
};

// Reads the run's rows once. Throws what RankHistory throws, and Error (kInterrupted) after a request to
// stop.
[[nodiscard]] RunEstimate estimate_run(const PlannedExperiment& experiment, const PlannedRun& run,
                                       const StopFlag& stop);

// An estimate for each run of each experiment; a run whose files cannot be read gets a problem instead.
// Throws Error (kInterrupted) after a request to stop.
struct PlanView {
  Plan plan;
  std::vector<std::vector<RunEstimate>> estimates;  // [experiment][run]
};
[[nodiscard]] PlanView view_plan(Plan plan, const StopFlag& stop);

// What a push of the plan would exit with, if the server takes everything.
[[nodiscard]] int exit_status(const PlanView& view);

[[nodiscard]] std::string plan_text(const PlanView& view);
[[nodiscard]] std::string plan_json(const PlanView& view);

// "0-3,8" for 0, 1, 2, 3, 8.
[[nodiscard]] std::string rank_list(const std::vector<int>& ranks);
// "1.5 MiB"
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
// "1 run", "2 runs"
[[nodiscard]] std::string count_text(std::uint64_t count, const std::string& noun);

}  // namespace ranklog::sync
