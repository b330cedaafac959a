#include "ranklog/sync/plan.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "artifact_plan.hpp"
#include "name_rules.hpp"
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
  constexpr std::int64_t kGivenUpSeconds = 6 * 3'600;
  run.newest_step_open = state_of(experiment, newest, options.now_ns,
                                  std::max(options.stale_seconds, kGivenUpSeconds)) == RunState::kRunning;
  run.exit_code = newest.info.exit_code.value_or(0);
  for (const RankSegment* segment : experiment.segments_of(rank)) run.logged_rows += segment->info.rows;
  return run;
}

// Nodes of which ranks were found but not the one that makes their run.
void note_leaderless_nodes(PlannedExperiment& planned) {
  std::map<int, bool> has_leader;
  for (const int rank : planned.experiment.ranks()) {
    const Identity& identity = identity_of(planned.experiment, rank);
    has_leader[identity.node] = has_leader[identity.node] || identity.local_rank == 0;
  }
  for (const auto& [node, found] : has_leader) {
    if (found) continue;
    planned.problems.push_back(
        {ErrorCode::kNotFound,
         "node " + std::to_string(node) + " has no file of its local rank 0 and makes no run"});
  }
}

// Nodes of which no rank was found. Which those are, only a uniform number of ranks a node can tell.
void note_lost_nodes(PlannedExperiment& planned) {
  const Experiment& experiment = planned.experiment;
  const int ranks_per_node = experiment.identity().local_world_size;
  if (ranks_per_node <= 0 || experiment.world_size() % ranks_per_node != 0) return;
  for (int first = 0; first < experiment.world_size(); first += ranks_per_node) {
    const auto found = std::ranges::count_if(
        planned.missing_ranks, [&](int rank) { return rank >= first && rank < first + ranks_per_node; });
    if (found != ranks_per_node) continue;
    planned.problems.push_back(
        {ErrorCode::kNotFound, "there is no file of any rank from " + std::to_string(first) + " to " +
                                   std::to_string(first + ranks_per_node - 1) + ": their node makes no run"});
  }
}

// Ranks whose file is there and cannot be read are named with it; the others by their run that is not made.
void note_missing(PlannedExperiment& planned, const std::set<int>& unreadable) {
  if (planned.runs.empty()) return;
  if (planned.strategy == Strategy::kNode) {
    note_leaderless_nodes(planned);
    note_lost_nodes(planned);
  }
  if (planned.strategy != Strategy::kAll) return;
  for (const int rank : planned.missing_ranks) {
    if (unreadable.contains(rank)) continue;
    planned.problems.push_back(
        {ErrorCode::kNotFound, "there is no file of rank " + std::to_string(rank) + ": it makes no run"});
  }
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

// Files that are damaged; those of ranks that make runs are named with their runs, where more is known.
void note_damage(PlannedExperiment& planned) {
  const auto makes_run = [&](int rank) {
    return std::ranges::any_of(planned.runs, [&](const PlannedRun& run) { return run.rank == rank; });
  };
  for (const Attempt& attempt : planned.experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) {
      if (segment.damage.empty() || makes_run(segment.info.identity.rank)) continue;
      const Damage& first = segment.damage.front();
      planned.problems.push_back({ErrorCode::kDamaged, "'" + segment.path.string() + "' is damaged: " +
                                                           first.place + ": " + first.reason});
    }
  }
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
  try {
    planned.artifacts = plan_artifacts(planned.experiment);
  } catch (const Error& error) {
    planned.problems.push_back({error.code(), std::string("artifacts are left out: ") + error.what()});
  }
  return planned;
}

// A damaged rank file is named with the experiment that it lies in.
void place_problem(Plan& plan, const ScanProblem& problem) {
  const PlanProblem entry{problem.code, problem.message};
  for (PlannedExperiment& planned : plan.experiments) {
    const bool here = problem.path.parent_path() == planned.experiment.folder &&
                      parse_rank_file_name(problem.path.filename().string());
    if (!here) continue;
    planned.problems.push_back(entry);
    return;
  }
  plan.problems.push_back(entry);
}

std::set<int> unreadable_ranks(const std::vector<ScanProblem>& problems, const Experiment& experiment) {
  std::set<int> ranks;
  for (const ScanProblem& problem : problems) {
    const auto name = parse_rank_file_name(problem.path.filename().string());
    if (name && problem.path.parent_path() == experiment.folder) ranks.insert(name->rank);
  }
  return ranks;
}

// Entities are compared as far as they are known: an empty one is the key's default, which may be any.
bool is_same_place(const PlannedExperiment& a, const PlannedExperiment& b) {
  const bool same_entity = a.entity == b.entity || a.entity.empty() || b.entity.empty();
  return same_entity && a.project == b.project;
}

// Two experiments in one run would mix their lines.
void refuse_shared_runs(Plan& plan) {
  std::map<std::string, std::vector<std::size_t>> by_id;
  for (std::size_t i = 0; i < plan.experiments.size(); ++i) {
    for (const PlannedRun& run : plan.experiments[i].runs) by_id[run.id].push_back(i);
  }
  std::set<std::size_t> refused;
  for (const auto& [id, members] : by_id) {
    for (const std::size_t i : members) {
      PlannedExperiment& planned = plan.experiments[i];
      const auto rival = std::ranges::find_if(members, [&](std::size_t other) {
        return other != i && is_same_place(planned, plan.experiments[other]);
      });
      if (rival == members.end()) continue;
      refused.insert(i);
      planned.problems.push_back(
          {ErrorCode::kUsage, "experiments " + planned.experiment.id + " and " +
                                  plan.experiments[*rival].experiment.id + " would both be run " + id +
                                  " in " + planned.project +
                                  "; upload them one by one, each under an id of its own with --id, or in "
                                  "projects of their own with -p/--project"});
    }
  }
  for (const std::size_t i : refused) plan.experiments[i].runs.clear();
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
  if (!options.run_id.empty() && runs != 1) {
    throw Error(ErrorCode::kUsage, "--id names one run, and the plan has " + std::to_string(runs));
  }
  for (PlannedExperiment& planned : plan.experiments) {
    note_missing(planned, unreadable_ranks(found.problems, planned.experiment));
  }
  for (const ScanProblem& problem : found.problems) place_problem(plan, problem);
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
