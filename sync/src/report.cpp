#include "ranklog/sync/report.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "ranklog/schema/printable.hpp"
#include "ranklog/sync/plan_view.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;

void append(std::vector<PlanProblem>& into, const std::vector<PlanProblem>& from) {
  into.insert(into.end(), from.begin(), from.end());
}

std::vector<PlanProblem> all_problems(const PushReport& report) {
  std::vector<PlanProblem> out = report.problems;
  for (const ExperimentReport& experiment : report.experiments) {
    append(out, experiment.problems);
    for (const RunReport& run : experiment.runs) append(out, run.faults);
  }
  return out;
}

bool is_up(RunOutcome outcome) {
  return outcome == RunOutcome::kUploaded || outcome == RunOutcome::kUpToDate ||
         outcome == RunOutcome::kPartial;
}

bool anything_is_up(const PushReport& report) {
  return std::ranges::any_of(report.experiments, [](const ExperimentReport& experiment) {
    return std::ranges::any_of(experiment.runs, [](const RunReport& run) { return is_up(run.outcome); });
  });
}

std::string run_line(const RunReport& run) {
  std::string line = printable(run.name) + " (" + printable(run.id) + "): ";
  switch (run.outcome) {
    case RunOutcome::kUploaded:
      line += "uploaded";
      break;
    case RunOutcome::kUpToDate:
      line += "up to date";
      break;
    case RunOutcome::kNothingYet:
      return line + "nothing to upload yet, " + std::string(to_string(run.state)) + "\n";
    case RunOutcome::kPartial:
      line += "PARTIAL";
      break;
    case RunOutcome::kFailed:
      line += "FAILED";
      break;
  }
  if (run.outcome != RunOutcome::kUpToDate) {
    line += ", " + std::to_string(run.lines_sent) + " of " + count_text(run.lines, "step") + " sent now";
  }
  if (run.artifacts > 0) {
    line += ", " + std::to_string(run.artifacts_sent) + " of " + count_text(run.artifacts, "artifact");
    if (run.artifacts_removed > 0) {
      line += " (" + std::to_string(run.artifacts_removed) + " removed from disk before they were uploaded)";
    }
  }
  line += run.state == RunState::kRunning ? ", still running" : ", " + std::string(to_string(run.state));
  if (run.superseded_rows > 0) line += ", " + count_text(run.superseded_rows, "row") + " superseded";
  if (!run.url.empty()) line += "  " + run.url;
  return line + "\n";
}

std::string faults_text(const std::vector<PlanProblem>& faults, const std::string& indent) {
  std::string out;
  for (const PlanProblem& fault : faults) out += indent + "! " + printable(fault.message) + "\n";
  return out;
}

std::uint64_t checked_runs(const PushReport& report) {
  std::uint64_t count = 0;
  for (const ExperimentReport& experiment : report.experiments) {
    for (const RunReport& run : experiment.runs) {
      count += run.outcome == RunOutcome::kUpToDate && run.checked ? 1 : 0;
    }
  }
  return count;
}

// Files, ranks and experiments that could not be made into runs.
std::uint64_t problems_beside_runs(const PushReport& report) {
  std::uint64_t count = report.problems.size();
  for (const ExperimentReport& experiment : report.experiments) count += experiment.problems.size();
  return count;
}

std::string experiment_notes(const ExperimentReport& experiment) {
  const std::string name = experiment.project + "/" + experiment.experiment + ": ";
  std::string out;
  if (!experiment.missing_ranks.empty()) {
    out += "! " + name + "no file of rank " + rank_list(experiment.missing_ranks) + " (world size " +
           std::to_string(experiment.world_size) + ")\n";
  }
  for (const std::string& warning : experiment.warnings) out += "! " + name + warning + "\n";
  for (const PlanProblem& problem : experiment.problems) out += "! " + name + problem.message + "\n";
  return out;
}

std::string closing_line(const PushReport& report) {
  std::array<std::uint64_t, 5> counts{};
  for (const ExperimentReport& experiment : report.experiments) {
    for (const RunReport& run : experiment.runs) ++counts[static_cast<std::size_t>(run.outcome)];
  }
  const auto of = [&](RunOutcome outcome) { return counts[static_cast<std::size_t>(outcome)]; };
  std::string line = count_text(of(RunOutcome::kUploaded), "run") + " uploaded";
  const std::uint64_t checked = checked_runs(report);
  if (checked > 0) line += ", " + std::to_string(checked) + " checked and up to date";
  if (of(RunOutcome::kUpToDate) > checked) {
    line += ", skipped " + std::to_string(of(RunOutcome::kUpToDate) - checked) +
            " up to date (--no-skip-synced asks the server)";
  }
  if (of(RunOutcome::kNothingYet) > 0)
    line += ", " + std::to_string(of(RunOutcome::kNothingYet)) + " without rows";
  if (of(RunOutcome::kPartial) > 0) line += ", " + std::to_string(of(RunOutcome::kPartial)) + " PARTIAL";
  if (of(RunOutcome::kFailed) > 0) line += ", " + std::to_string(of(RunOutcome::kFailed)) + " FAILED";
  const std::uint64_t beside = problems_beside_runs(report);
  if (beside > 0) line += ", PARTIAL: " + count_text(beside, "problem") + " beside the runs, see above";
  return line + "\n";
}

json problems_json(const std::vector<PlanProblem>& problems) {
  json list = json::array();
  for (const PlanProblem& problem : problems) {
    list.push_back({{"message", problem.message}, {"exit_status", exit_status(problem.code)}});
  }
  return list;
}

json run_json(const RunReport& run) {
  return {{"id", run.id},
          {"name", run.name},
          {"group", run.group},
          {"rank", run.rank},
          {"url", run.url},
          {"state", to_string(run.state)},
          {"outcome", to_string(run.outcome)},
          {"checked", run.checked},
          {"steps", run.lines},
          {"steps_sent", run.lines_sent},
          {"superseded_rows", run.superseded_rows},
          {"artifacts", run.artifacts},
          {"artifacts_sent", run.artifacts_sent},
          {"artifacts_removed", run.artifacts_removed},
          {"faults", problems_json(run.faults)}};
}

}  // namespace

std::string_view to_string(RunOutcome outcome) noexcept {
  switch (outcome) {
    case RunOutcome::kUploaded:
      return "uploaded";
    case RunOutcome::kUpToDate:
      return "up to date";
    case RunOutcome::kNothingYet:
      return "nothing yet";
    case RunOutcome::kPartial:
      return "partial";
    case RunOutcome::kFailed:
      return "failed";
  }
  return "failed";
}

int exit_status(std::span<const PlanProblem> problems, bool anything_is_up) {
  const std::array<int, 6> order = {exit_status(ErrorCode::kInterrupted),
                                    kExitUsage,
                                    kExitUnauthorized,
                                    kExitFailed,
                                    kExitDamaged,
                                    kExitTemporary};
  std::array<bool, order.size()> seen{};
  for (const PlanProblem& problem : problems) {
    int status = exit_status(problem.code);
    if (status == kExitDamaged && anything_is_up) status = kExitFailed;
    for (std::size_t i = 0; i < order.size(); ++i) seen[i] = seen[i] || order[i] == status;
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (seen[i]) return order[i];
  }
  return kExitOk;
}

int exit_status(const PushReport& report) {
  constexpr int kSignalBase = 128;
  if (report.signal_number != 0) return kSignalBase + report.signal_number;
  return exit_status(all_problems(report), anything_is_up(report));
}

std::string report_text(const PushReport& report, bool verbose) {
  std::string out;
  for (const ExperimentReport& experiment : report.experiments) {
    for (const RunReport& run : experiment.runs) {
      if (run.outcome == RunOutcome::kUpToDate && !verbose && report.experiments.size() > 1) continue;
      out += run_line(run) + faults_text(run.faults, "  ");
    }
    out += experiment_notes(experiment);
  }
  return out + faults_text(report.problems, "") + closing_line(report);
}

std::string report_json(const PushReport& report) {
  json experiments = json::array();
  for (const ExperimentReport& experiment : report.experiments) {
    json runs = json::array();
    for (const RunReport& run : experiment.runs) runs.push_back(run_json(run));
    experiments.push_back({{"project", experiment.project},
                           {"experiment", experiment.experiment},
                           {"world_size", experiment.world_size},
                           {"missing_ranks", experiment.missing_ranks},
                           {"warnings", experiment.warnings},
                           {"runs", std::move(runs)},
                           {"problems", problems_json(experiment.problems)}});
  }
  const json out = {{"experiments", std::move(experiments)},
                    {"problems", problems_json(report.problems)},
                    {"exit_status", exit_status(report)}};
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string error_json(int exit_status, const std::string& message) {
  const json out = {{"exit_status", exit_status}, {"error", message}};
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace ranklog::sync
