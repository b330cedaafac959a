#include "ranklog/sync/plan.hpp"

#include <algorithm>

#include "artifact_plan.hpp"
#include "name_rules.hpp"
#include "plan_problems.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/naming.hpp"

namespace ranklog::sync {
namespace {

const RankSegment& newest_segment(const Experiment& experiment, int rank) {
  return *experiment.segments_of(rank).back();
}

const Identity& identity_of(const Experiment& experiment, int rank) {
  return newest_segment(experiment, rank).info.identity;
}

std::string slug_of(const std::string& text) {
  constexpr std::size_t kLongest = 32;
  std::string slug;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (plain) {
      slug.push_back(c);
    } else if (!slug.empty() && slug.back() != '-') {
      slug.push_back('-');
    }
  }
  slug = slug.substr(0, kLongest);
  while (slug.ends_with('-')) slug.pop_back();
  return slug.empty() ? "run" : slug;
}

const std::string& first_set(const std::string& a, const std::string& b) {
  return a.empty() ? b : a;
}

std::vector<int> ranks_of_node(const Experiment& experiment, int node) {
  std::vector<int> ranks;
  for (const int rank : experiment.ranks()) {
    if (identity_of(experiment, rank).node == node) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> ranks_stood_for(const Experiment& experiment, Strategy strategy, int rank) {
  switch (strategy) {
    case Strategy::kMain:
      return experiment.ranks();
    case Strategy::kNode:
      return ranks_of_node(experiment, identity_of(experiment, rank).node);
    case Strategy::kAll:
      break;
  }
  return {rank};
}

std::string run_name(const Identity& identity, Strategy strategy) {
  if (strategy == Strategy::kMain) return first_set(identity.name, identity.experiment);
  const std::string rank = "rank-" + std::to_string(identity.rank);
  return identity.name.empty() ? rank : identity.name + "-" + rank;
}

std::string run_id_of(const Identity& identity, Strategy strategy) {
  if (strategy == Strategy::kMain && !identity.wandb_run_id.empty()) return identity.wandb_run_id;
  return derived_run_id(identity.project, identity.experiment, strategy, identity.rank);
}

PlannedRun plan_run(const PlannedExperiment& planned, int rank, const PlanOptions& options) {
  const Experiment& experiment = planned.experiment;
  const RankSegment& newest = newest_segment(experiment, rank);
  const Identity& identity = newest.info.identity;
  PlannedRun run;
  run.id = options.run_id.empty() ? run_id_of(identity, planned.strategy) : options.run_id;
  run.name = run_name(identity, planned.strategy);
  run.group = first_set(options.group, first_set(identity.group, identity.experiment));
  run.job_type = first_set(options.job_type, identity.job_type);
  run.rank = rank;
  run.node = identity.node;
  run.ranks = ranks_stood_for(experiment, planned.strategy, rank);
  run.state = state_of(experiment, newest, options.now_ns, options.stale_seconds);
  // One that is only silent may be back: longer than this nobody sleeps.
  constexpr std::int64_t kGivenUpSeconds = std::int64_t{6} * 3'600;
  run.newest_step_open = state_of(experiment, newest, options.now_ns,
                                  std::max(options.stale_seconds, kGivenUpSeconds)) == RunState::kRunning;
  run.exit_code = newest.info.exit_code.value_or(0);
  for (const RankSegment* segment : experiment.segments_of(rank)) run.logged_rows += segment->info.rows;
  return run;
}

void plan_runs(PlannedExperiment& planned, const PlanOptions& options) {
  const int main_rank = options.main_rank.value_or(0);
  const std::vector<int> chosen = chosen_ranks(planned.experiment, planned.strategy, main_rank);
  if (chosen.empty() && planned.strategy == Strategy::kMain) {
    planned.problems.push_back({ErrorCode::kNotFound, "there is no readable file of rank " +
                                                          std::to_string(main_rank) +
                                                          "; name another rank with --main-rank"});
  }
  for (const int rank : chosen) planned.runs.push_back(plan_run(planned, rank, options));
  if (!planned.runs.empty()) planned.runs.front().owns_artifacts = true;
}

// What W&B would refuse is refused here, before anything is asked of a server; a tag is left out, and a name
// that is only too long is cut, so that the run can go up.
void check_names(PlannedExperiment& planned) {
  for (PlannedRun& run : planned.runs) {
    check_run_id(run.id);
    for (const std::string& tag : identity_of(planned.experiment, run.rank).tags) {
      if (is_tag(tag)) continue;
      planned.problems.push_back(
          {ErrorCode::kServer,
           "tag '" + tag + "' of run " + run.id + " is left out: W&B takes tags of 1 to 64 characters"});
    }
    const std::string cut = cut_display_name(run.name);
    if (cut == run.name) continue;
    planned.warnings.push_back("the name of run " + run.id + " is cut to the 128 characters that W&B takes");
    run.name = cut;
  }
}

void check_main_rank(const PlannedExperiment& planned, const PlanOptions& options) {
  if (!options.main_rank || planned.strategy == Strategy::kMain) return;
  throw Error(ErrorCode::kUsage,
              "--main-rank is for strategy main, and " + planned.experiment.id + " goes up with strategy " +
                  std::string(to_string(planned.strategy)),
              "add --strategy main");
}

PlannedExperiment plan_experiment(Experiment&& experiment, const PlanOptions& options) {
  PlannedExperiment planned;
  planned.experiment = std::move(experiment);
  const Identity& identity = planned.experiment.identity();
  planned.strategy = options.strategy.value_or(identity.log_strategy.value_or(Strategy::kMain));
  planned.entity = first_set(options.entity, first_set(identity.entity, options.default_entity));
  planned.project = first_set(options.project, planned.experiment.project);
  check_main_rank(planned, options);
  planned.missing_ranks = planned.experiment.missing_ranks();
  try {
    check_project(planned.project);
    plan_runs(planned, options);
    check_names(planned);
  } catch (const Error& error) {
    planned.runs.clear();
    planned.problems.push_back({error.code(), error.what()});
    return planned;
  }
  note_damage(planned);
  note_open_steps(planned);
  try {
    planned.artifacts = plan_artifacts(planned.experiment);
  } catch (const Error& error) {
    planned.problems.push_back({error.code(), std::string("artifacts are left out: ") + error.what()});
  }
  return planned;
}

void add_segment(std::string& text, const RankSegment& segment) {
  const FileInfo& info = segment.info;
  const auto add = [&](std::int64_t number) { text += std::to_string(number) + ' '; };
  text += info.identity.launch_token + '\n';
  add(info.identity.rank);
  add(info.start_time_ns);
  add(info.identity.resume_step.value_or(-1));
  add(static_cast<std::int64_t>(info.rows));
  add(static_cast<std::int64_t>(info.dropped_rows));
  add(info.last_step.value_or(-1));
  add(info.end_time_ns.value_or(-1));
  add(info.end_state ? static_cast<std::int64_t>(*info.end_state) : -1);
  add(info.exit_code.value_or(-1));
  // Config and artifacts of a rank that still writes change without a row.
  if (!info.end_state) add(info.heartbeat_ns);
  text += '\n';
}

}  // namespace

std::string derived_run_id(const std::string& project, const std::string& experiment, Strategy strategy,
                           int rank) {
  constexpr std::size_t kDigits = 8;
  return slug_of(experiment) + "-" + std::string(to_string(strategy)) + "-r" + std::to_string(rank) + "-" +
         sha256_hex(project + "/" + experiment).substr(0, kDigits);
}

std::vector<int> chosen_ranks(const Experiment& experiment, Strategy strategy, int main_rank) {
  std::vector<int> chosen;
  for (const int rank : experiment.ranks()) {
    const bool leads = identity_of(experiment, rank).local_rank == 0;
    const bool taken = strategy == Strategy::kAll || (strategy == Strategy::kNode && leads) ||
                       (strategy == Strategy::kMain && rank == main_rank);
    if (taken) chosen.push_back(rank);
  }
  return chosen;
}

Plan make_plan(std::span<const std::filesystem::path> inputs, const PlanOptions& options) {
  ScanResult found = scan(inputs);
  Plan plan;
  std::size_t runs = 0;
  for (Experiment& experiment : found.experiments) {
    plan.experiments.push_back(plan_experiment(std::move(experiment), options));
    runs += plan.experiments.back().runs.size();
  }
  // A plan without a run says itself why.
  if (!options.run_id.empty() && runs > 1) {
    throw Error(ErrorCode::kUsage, "--id names one run, and the plan has " + std::to_string(runs));
  }
  note_unreadable_files(plan, found.problems);
  refuse_shared_runs(plan);
  return plan;
}

std::string input_fingerprint(const PlannedExperiment& planned, const PlannedRun& run) {
  // Bumped when the same files are to be uploaded differently.
  constexpr std::string_view kMergeVersion = "2";
  std::string text(kMergeVersion);
  for (const std::string& part : {std::string(to_string(planned.strategy)), std::to_string(run.rank), run.id,
                                  run.name, run.group, run.job_type, std::string(to_string(run.state))}) {
    text += '\n' + part;
  }
  text += run.newest_step_open ? "\nopen\n" : "\n";
  // They stand in the run's config.
  for (const int rank : run.ranks) text += std::to_string(rank) + ' ';
  text += '\n';
  for (const int rank : planned.missing_ranks) text += std::to_string(rank) + ' ';
  text += '\n';
  for (const Attempt& attempt : planned.experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) {
      if (run.owns_artifacts || segment.info.identity.rank == run.rank) add_segment(text, segment);
    }
  }
  return sha256_hex(text);
}

}  // namespace ranklog::sync
