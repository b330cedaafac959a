#include "ranklog/sync/plan_view.hpp"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "artifact_plan.hpp"
#include "history_upload.hpp"
#include "ranklog/schema/printable.hpp"
#include "ranklog/sync/report.hpp"
#include "text_table.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;

// W&B's guidance (protocol page 11).
constexpr std::uint64_t kGuidancePoints = 100'000;
constexpr std::uint64_t kGuidanceMetrics = 10'000;

// Questions, upsert, run files, summary and end of one run; and what one artifact takes besides its files.
constexpr std::uint64_t kRequestsOfRun = 9;
constexpr std::uint64_t kRequestsOfArtifact = 6;

std::vector<std::string> warnings_of(const HistorySurvey& survey) {
  std::vector<std::string> warnings;
  if (survey.lines > kGuidancePoints) {
    warnings.push_back(std::to_string(survey.lines) + " steps exceed W&B's guidance of " +
                       std::to_string(kGuidancePoints) + " points a metric: charts may be slow");
  }
  if (survey.metrics > kGuidanceMetrics) {
    warnings.push_back(std::to_string(survey.metrics) + " metrics exceed W&B's guidance of " +
                       std::to_string(kGuidanceMetrics) + " a run");
  }
  return warnings;
}

struct Totals {
  std::uint64_t runs = 0, rows = 0, steps = 0, bytes = 0, requests = 0, artifacts = 0, artifact_bytes = 0;

  void add(const RunEstimate& estimate) {
    ++runs;
    rows += estimate.rows;
    steps += estimate.steps;
    bytes += estimate.bytes;
    requests += estimate.requests;
    artifacts += estimate.artifacts;
    artifact_bytes += estimate.artifact_bytes;
  }
};

std::string problems_text(const std::vector<PlanProblem>& problems, const std::string& indent,
                          const std::string& subject = "") {
  std::string out;
  for (const PlanProblem& problem : problems)
    out += indent + "! " + printable(subject + problem.message) + "\n";
  return out;
}

std::string run_table(const PlannedExperiment& planned, const std::vector<RunEstimate>& estimates) {
  using Align = TextTable::Align;
  TextTable table({{"RUN"},
                   {"NAME"},
                   {"GROUP"},
                   {"RANK", Align::kRight},
                   {"FOR RANKS"},
                   {"STATE"},
                   {"ROWS", Align::kRight},
                   {"STEPS", Align::kRight},
                   {"HISTORY", Align::kRight},
                   {"REQUESTS", Align::kRight},
                   {"ARTIFACTS"}});
  for (std::size_t i = 0; i < planned.runs.size(); ++i) {
    const PlannedRun& run = planned.runs[i];
    const RunEstimate& cost = estimates[i];
    std::string artifacts = "-";
    if (cost.artifacts > 0)
      artifacts = std::to_string(cost.artifacts) + " (" + bytes_text(cost.artifact_bytes) + ")";
    table.add({printable(run.id), printable(run.name), printable(run.group), std::to_string(run.rank),
               rank_list(run.ranks), std::string(to_string(run.state)), std::to_string(cost.rows),
               std::to_string(cost.steps), bytes_text(cost.bytes), std::to_string(cost.requests), artifacts});
  }
  return table.text("  ");
}

std::string experiment_text(const PlannedExperiment& planned, const std::vector<RunEstimate>& estimates) {
  const std::string entity = planned.entity.empty() ? "(default entity)" : planned.entity;
  std::string out = printable(planned.experiment.project + "/" + planned.experiment.id) + "  strategy " +
                    std::string(to_string(planned.strategy)) + "  to " +
                    printable(entity + "/" + planned.project) + "\n";
  if (!planned.runs.empty()) out += run_table(planned, estimates);
  for (std::size_t i = 0; i < planned.runs.size(); ++i) {
    const RunEstimate& cost = estimates[i];
    if (cost.superseded > 0) {
      out += "  " + printable(planned.runs[i].id) + ": " + count_text(cost.superseded, "row") +
             " replaced by a later attempt\n";
    }
    for (const std::string& warning : cost.warnings)
      out += "  ! " + printable(planned.runs[i].id + ": " + warning) + "\n";
    out += problems_text(cost.problems, "  ", planned.runs[i].id + ": ");
  }
  if (!planned.missing_ranks.empty()) {
    out += "  ! no file of rank " + rank_list(planned.missing_ranks) + " (world size " +
           std::to_string(planned.experiment.world_size()) + ")\n";
  }
  for (const std::string& warning : planned.warnings) out += "  ! " + printable(warning) + "\n";
  return out + problems_text(planned.problems, "  ");
}

json problems_json(const std::vector<PlanProblem>& problems) {
  json list = json::array();
  for (const PlanProblem& problem : problems) list.push_back(problem.message);
  return list;
}

json run_json(const PlannedRun& run, const RunEstimate& cost) {
  return {{"id", run.id},
          {"name", run.name},
          {"group", run.group},
          {"job_type", run.job_type},
          {"rank", run.rank},
          {"node", run.node},
          {"ranks", run.ranks},
          {"state", to_string(run.state)},
          {"rows", cost.rows},
          {"steps", cost.steps},
          {"history_bytes", cost.bytes},
          {"superseded_rows", cost.superseded},
          {"requests", cost.requests},
          {"artifacts", cost.artifacts},
          {"artifact_bytes", cost.artifact_bytes},
          {"warnings", cost.warnings},
          {"problems", problems_json(cost.problems)}};
}

// What a push finds out before it sends a version is found out here, too.
void add_artifacts(RunEstimate& out, const std::vector<PlannedArtifact>& artifacts) {
  for (const PlannedArtifact& artifact : artifacts) {
    if (artifact.removed) continue;
    ++out.artifacts;
    out.artifact_bytes += artifact.bytes;
    out.requests += kRequestsOfArtifact + artifact.files.size();
    try {
      check_files(artifact);
    } catch (const Error& error) {
      out.problems.push_back({error.code(), error.what()});
    }
  }
  out.goes_up = out.goes_up || out.artifacts > 0;
}

}  // namespace

RunEstimate estimate_run(const PlannedExperiment& planned, const PlannedRun& run, const StopFlag& stop) {
  const RunFacts facts = read_facts(planned.experiment, run.rank);
  RunMerge merge(planned.experiment, run.rank, facts, run.newest_step_open);
  const HistorySurvey survey = survey_history(merge, {}, run.id, stop);
  RunEstimate out;
  out.rows = survey.counts.rows;
  out.steps = survey.lines;
  out.bytes = survey.bytes;
  out.superseded = survey.counts.superseded_rows;
  out.requests = kRequestsOfRun + survey.requests;
  out.warnings = warnings_of(survey);
  if (survey.lines == 0 && !survey.damage.empty()) {
    out.problems.push_back({ErrorCode::kDamaged, unreadable_text(run.rank, survey)});
    return out;
  }
  out.problems = survey_faults(survey);
  out.goes_up = run.logged_rows > 0;
  if (run.owns_artifacts) add_artifacts(out, planned.artifacts);
  return out;
}

PlanView view_plan(Plan plan, const StopFlag& stop) {
  PlanView view{std::move(plan), {}};
  for (PlannedExperiment& planned : view.plan.experiments) {
    auto& estimates = view.estimates.emplace_back();
    for (const PlannedRun& run : planned.runs) {
      try {
        estimates.push_back(estimate_run(planned, run, stop));
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kInterrupted) throw;
        estimates.emplace_back().problems.push_back({error.code(), error.what()});
      }
    }
  }
  return view;
}

int exit_status(const PlanView& view) {
  std::vector<PlanProblem> problems = view.plan.problems;
  const auto add = [&](const std::vector<PlanProblem>& more) {
    problems.insert(problems.end(), more.begin(), more.end());
  };
  bool anything_goes_up = false;
  for (std::size_t i = 0; i < view.plan.experiments.size(); ++i) {
    add(view.plan.experiments[i].problems);
    for (const RunEstimate& estimate : view.estimates[i]) {
      add(estimate.problems);
      anything_goes_up = anything_goes_up || estimate.goes_up;
    }
  }
  return exit_status(problems, anything_goes_up);
}

std::string plan_text(const PlanView& view) {
  std::string out;
  Totals totals;
  for (std::size_t i = 0; i < view.plan.experiments.size(); ++i) {
    out += experiment_text(view.plan.experiments[i], view.estimates[i]);
    for (const RunEstimate& cost : view.estimates[i]) totals.add(cost);
  }
  out += problems_text(view.plan.problems, "");
  out += "Total: " + count_text(totals.runs, "run") + ", " + count_text(totals.rows, "row") + ", " +
         count_text(totals.steps, "step") + ", " + bytes_text(totals.bytes) + " of history, " +
         count_text(totals.artifacts, "artifact") + " (" + bytes_text(totals.artifact_bytes) + "), about " +
         count_text(totals.requests, "request") + " for a first upload\n";
  return out;
}

std::string plan_json(const PlanView& view) {
  json experiments = json::array();
  for (std::size_t i = 0; i < view.plan.experiments.size(); ++i) {
    const PlannedExperiment& planned = view.plan.experiments[i];
    json runs = json::array();
    for (std::size_t run = 0; run < planned.runs.size(); ++run) {
      runs.push_back(run_json(planned.runs[run], view.estimates[i][run]));
    }
    experiments.push_back({{"project", planned.experiment.project},
                           {"experiment", planned.experiment.id},
                           {"strategy", to_string(planned.strategy)},
                           {"to_entity", planned.entity},
                           {"to_project", planned.project},
                           {"world_size", planned.experiment.world_size()},
                           {"missing_ranks", planned.missing_ranks},
                           {"warnings", planned.warnings},
                           {"runs", std::move(runs)},
                           {"problems", problems_json(planned.problems)}});
  }
  const json out = {{"experiments", std::move(experiments)}, {"problems", problems_json(view.plan.problems)}};
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string rank_list(const std::vector<int>& ranks) {
  std::string out;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!out.empty()) out += ",";
    out += std::to_string(ranks[begin]);
    if (end - begin > 1) out += (end - begin > 2 ? "-" : ",") + std::to_string(ranks[end - 1]);
    begin = end;
  }
  return out;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  constexpr double kStep = 1024;
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= kStep && unit + 1 < kUnits.size(); ++unit) value /= kStep;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string count_text(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace ranklog::sync
