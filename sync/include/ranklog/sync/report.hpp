#pragma once
// What became of a push.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/sync/plan.hpp"

namespace ranklog::sync {

enum class RunOutcome : std::uint8_t {
  kUploaded,    // everything that the files hold is at the server
  kUpToDate,    // it was there already
  kNothingYet,  // no rows so far
  kPartial,     // the history is up, something beside it is not
  kFailed,
};
[[nodiscard]] std::string_view to_string(RunOutcome outcome) noexcept;

struct RunReport {
  std::string id, name, group, url;
  int rank = 0;
  RunState state = RunState::kRunning;
  RunOutcome outcome = RunOutcome::kFailed;
  bool checked = false;                 // the server was asked about it
  std::uint64_t lines = 0;              // of the whole history
  std::uint64_t lines_sent = 0;         // by this push
  std::uint64_t superseded_rows = 0;    // replaced by a later attempt
  std::uint64_t artifacts = 0;          // that the run owns
  std::uint64_t artifacts_sent = 0;     // made or linked by this push
  std::uint64_t artifacts_removed = 0;  // whose files were removed, as the log says, before they were up
  std::vector<PlanProblem> faults;      // why it is partial or failed
};

struct ExperimentReport {
  std::string project, experiment;
  std::vector<int> missing_ranks;  // of which there is no file
  int world_size = 0;
  std::vector<std::string> warnings;  // that make nothing incomplete
  std::vector<RunReport> runs;
  std::vector<PlanProblem> problems;
};

struct PushReport {
  std::vector<ExperimentReport> experiments;
  std::vector<PlanProblem> problems;
  int signal_number = 0;  // that stopped the push; 0: none
};

// The first that applies of 130 (stopped), 2, 4, 1, 5, 75, 0. Damage beside something that goes up makes it
// partial: 1.
[[nodiscard]] int exit_status(std::span<const PlanProblem> problems, bool anything_is_up);

// The exit status of wandb-sync (see --help): 128 + signal, else what the problems make it.
[[nodiscard]] int exit_status(const PushReport& report);

[[nodiscard]] std::string report_text(const PushReport& report, bool verbose);
[[nodiscard]] std::string report_json(const PushReport& report);
// Where there is no report: {"exit_status": N, "error": "..."}.
[[nodiscard]] std::string error_json(int exit_status, const std::string& message);

}  // namespace ranklog::sync
