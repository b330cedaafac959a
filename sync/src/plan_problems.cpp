#include "plan_problems.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "ranklog/schema/naming.hpp"

namespace ranklog::sync {
namespace {

// Nodes of which ranks were found but not the one that makes their run.
void note_leaderless_nodes(PlannedExperiment& planned) {
  std::map<int, bool> has_leader;
  for (const int rank : planned.experiment.ranks()) {
    const Identity& identity = planned.experiment.segments_of(rank).back()->info.identity;
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
  if (planned.runs.empty() && !planned.problems.empty()) return;  // they say why
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

}  // namespace

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

void note_open_steps(PlannedExperiment& planned) {
  for (const PlannedRun& run : planned.runs) {
    if (!run.newest_step_open || run.state == RunState::kRunning) continue;
    const Identity& identity = planned.experiment.segments_of(run.rank).back()->info.identity;
    planned.warnings.push_back("the newest step of run " + run.id + " is held back, for process " +
                               std::to_string(identity.pid) + " on " + identity.host +
                               " may still be writing it; it goes up after six hours of silence");
  }
}

void note_unreadable_files(Plan& plan, const std::vector<ScanProblem>& problems) {
  for (PlannedExperiment& planned : plan.experiments) {
    note_missing(planned, unreadable_ranks(problems, planned.experiment));
  }
  for (const ScanProblem& problem : problems) place_problem(plan, problem);
}

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

}  // namespace ranklog::sync
