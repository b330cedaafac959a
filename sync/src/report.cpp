#include "ranklog/sync/report.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "ranklog/sync/plan_view.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;

template <typename Visit>
void for_each_problem(const PushReport& report, Visit visit) {
  for (const PlanProblem& problem : report.problems) visit(problem);
  for (const ExperimentReport& experiment : report.experiments) {
    for (const PlanProblem& problem : experiment.problems) visit(problem);
    for (const RunReport& run : experiment.runs) {
      for (const PlanProblem& fault : run.faults) visit(fault);
    }
  }
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
  std::string line = run.name + " (" + run.id + "): ";
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
  if (run.artifacts > 0)
    line += ", " + std::to_string(run.artifacts_sent) + " of " + count_text(run.artifacts, "artifact");
  line += run.state == RunState::kRunning ? ", still running" : ", " + std::string(to_string(run.state));
  if (run.superseded_rows > 0) line += ", " + count_text(run.superseded_rows, "row") + " superseded";
  if (!run.url.empty()) line += "  " + run.url;
  return line + "\n";
}

std::string faults_text(const std::vector<PlanProblem>& faults, const std::string& indent) {
  std::string out;
  for (const PlanProblem& fault : faults) out += indent + "! " + fault.message + "\n";
  return out;
}

std::string closing_line(const PushReport& report) {
  std::array<std::uint64_t, 5> counts{};
  for (const ExperimentReport& experiment : report.experiments) {
    for (const RunReport& run : experiment.runs) ++counts[static_cast<std::size_t>(run.outcome)];
  }
  const auto of = [&](RunOutcome outcome) { return counts[static_cast<std::size_t>(outcome)]; };
  std::string line = count_text(of(RunOutcome::kUploaded), "run") + " uploaded";
  if (of(RunOutcome::kUpToDate) > 0) {
    line += ", skipped " + std::to_string(of(RunOutcome::kUpToDate)) +
            " up to date (--no-skip-synced asks the server)";
  }
  if (of(RunOutcome::kNothingYet) > 0)
    line += ", " + std::to_string(of(RunOutcome::kNothingYet)) + " without rows";
  if (of(RunOutcome::kPartial) > 0) line += ", " + std::to_string(of(RunOutcome::kPartial)) + " PARTIAL";
  if (of(RunOutcome::kFailed) > 0) line += ", " + std::to_string(of(RunOutcome::kFailed)) + " FAILED";
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
          {"steps", run.lines},
          {"steps_sent", run.lines_sent},
          {"superseded_rows", run.superseded_rows},
          {"artifacts", run.artifacts},
          {"artifacts_sent", run.artifacts_sent},
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

int exit_status(const PushReport& report) {
  constexpr int kSignalBase = 128;
  constexpr std::array<int, 5> kOrder = {kExitUsage, kExitUnauthorized, kExitFailed, kExitDamaged,
                                         kExitTemporary};
  if (report.signal_number != 0) return kSignalBase + report.signal_number;
  // Damage beside runs that are up means that the upload is partial.
  const int damaged = anything_is_up(report) ? kExitFailed : kExitDamaged;
  std::array<bool, kOrder.size()> seen{};
  for_each_problem(report, [&](const PlanProblem& problem) {
    int status = exit_status(problem.code);
    if (status == kExitDamaged) status = damaged;
    for (std::size_t i = 0; i < kOrder.size(); ++i) seen[i] = seen[i] || kOrder[i] == status;
  });
  for (std::size_t i = 0; i < kOrder.size(); ++i) {
    if (seen[i]) return kOrder[i];
  }
  return kExitOk;
}

std::string report_text(const PushReport& report, bool verbose) {
  std::string out;
  for (const ExperimentReport& experiment : report.experiments) {
    for (const RunReport& run : experiment.runs) {
      if (run.outcome == RunOutcome::kUpToDate && !verbose && report.experiments.size() > 1) continue;
      out += run_line(run) + faults_text(run.faults, "  ");
    }
    out += faults_text(experiment.problems, experiment.project + "/" + experiment.experiment + ": ");
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
