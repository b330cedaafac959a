#include "ranklog/sync/push.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "generation.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/naming.hpp"

namespace ranklog::sync {
namespace {

namespace fs = std::filesystem;

// One experiment on its way.
struct Shipment {
  const PlannedExperiment* planned = nullptr;
  ExperimentReport* report = nullptr;
  std::vector<std::size_t> pending;  // indices of runs that must be looked at with the server
  std::unique_ptr<UploadState> state;
};

struct Task {
  Shipment* shipment = nullptr;
  std::size_t run = 0;
};

// Where an experiment's state can lie: its pieces may have been synced one by one, each from its own folder.
std::vector<fs::path> state_folders(const PlannedExperiment& planned, const PushOptions& options) {
  const Experiment& experiment = planned.experiment;
  if (!options.state_dir.empty()) {
    return {options.state_dir / encode_file_name(experiment.project) / encode_file_name(experiment.id)};
  }
  std::vector<fs::path> folders;
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) {
      fs::path folder = segment.path.parent_path() / kSyncFolderName;
      if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(std::move(folder));
    }
  }
  return folders;
}

std::string default_entity_in(const std::vector<fs::path>& folders, const Destination& destination) {
  for (const fs::path& folder : folders) {
    std::string entity = known_default_entity(folder, destination.server, destination.project);
    if (!entity.empty()) return entity;
  }
  return "";
}

RunReport begin_report(const PlannedRun& run) {
  RunReport report;
  report.id = run.id;
  report.name = run.name;
  report.group = run.group;
  report.rank = run.rank;
  report.state = run.state;
  return report;
}

bool has_nothing(const PlannedExperiment& planned, const PlannedRun& run) {
  return run.logged_rows == 0 && (!run.owns_artifacts || planned.artifacts.empty());
}

// Sorts out, without the server, what needs it.
void find_pending(Shipment& shipment, const PushOptions& options) {
  const PlannedExperiment& planned = *shipment.planned;
  const std::vector<fs::path> folders = state_folders(planned, options);
  Destination destination{options.server.base_url, planned.entity, planned.project};
  if (destination.entity.empty()) {
    destination.entity = default_entity_in(folders, destination);
  }
  const fs::path state_file = state_path(find_state_folder(folders, destination), destination);
  for (std::size_t i = 0; i < planned.runs.size(); ++i) {
    PlannedRun run = planned.runs[i];
    run.id = generation_id(run.id, known_generation(state_file, run.id));
    RunReport& report = shipment.report->runs.emplace_back(begin_report(run));
    if (has_nothing(planned, run)) {
      report.outcome = RunOutcome::kNothingYet;
    } else if (options.skip_synced &&
               done_fingerprint(state_file, run.id) == input_fingerprint(planned, run)) {
      report.outcome = RunOutcome::kUpToDate;
      report.url = run_url(options.server, {destination.entity, destination.project, run.id});
    } else {
      shipment.pending.push_back(i);
    }
  }
}

void fail_pending(Shipment& shipment, const Error& error) {
  for (const std::size_t i : shipment.pending) {
    shipment.report->runs[i].faults.push_back({error.code(), error.what()});
  }
  shipment.pending.clear();
}

void open_state(Shipment& shipment, const PushOptions& options, const Session& session) {
  const PlannedExperiment& planned = *shipment.planned;
  const bool by_default = planned.entity.empty();
  const Destination destination{options.server.base_url, by_default ? session.viewer.entity : planned.entity,
                                planned.project};
  try {
    if (destination.entity.empty()) {
      throw Error(ErrorCode::kUsage, "the API key has no default entity", "name one with --entity");
    }
    const fs::path path =
        state_path(find_state_folder(state_folders(planned, options), destination), destination);
    shipment.state = std::make_unique<UploadState>(path, destination, by_default);
  } catch (const Error& error) {
    fail_pending(shipment, error);
  }
}

void carry_out(const Task& task, Session& session, const PushOptions& options) {
  const PlannedExperiment& planned = *task.shipment->planned;
  RunReport& report = task.shipment->report->runs[task.run];
  try {
    if (session.stop.count() > 0) throw Error(ErrorCode::kInterrupted, "not begun: stopped before");
    upload_generation(session, *task.shipment->state, planned, planned.runs[task.run], options.new_generation,
                      report);
  } catch (const Error& error) {
    report.outcome = RunOutcome::kFailed;
    report.faults.push_back({error.code(), error.what()});
  } catch (const std::exception& error) {
    report.outcome = RunOutcome::kFailed;
    report.faults.push_back({ErrorCode::kIo, error.what()});
  }
}

void carry_out_all(const std::vector<Task>& tasks, Session& session, const PushOptions& options) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) carry_out(tasks[i], session, options);
  };
  const std::size_t workers =
      std::min<std::size_t>(static_cast<std::size_t>(std::max(1, options.parallel_runs)), tasks.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(work);
  work();
}

void push_pending(std::vector<Shipment>& shipments, const PushOptions& options, const PushTools& tools) {
  const Credentials credentials = find_credentials(options.server, tools.environment);
  const ServerAccess access(options.server, credentials);
  HttpClient http(tools.transport, tools.clock, tools.stop,
                  {options.patience,
                   [&](const std::string& text) { tools.progress.notice(text); },
                   {base64("api:" + credentials.api_key), credentials.api_key}});
  WandbApi api(http, access);
  Session session{http, access, api, api.viewer(), api.features(), tools.progress, tools.stop};
  std::vector<Task> tasks;
  for (Shipment& shipment : shipments) {
    if (shipment.pending.empty()) continue;
    open_state(shipment, options, session);
    for (const std::size_t run : shipment.pending) tasks.push_back({&shipment, run});
  }
  carry_out_all(tasks, session, options);
}

}  // namespace

PushReport push(const Plan& plan, const PushOptions& options, const PushTools& tools) {
  PushReport report;
  report.problems = plan.problems;
  report.experiments.resize(plan.experiments.size());
  std::vector<Shipment> shipments(plan.experiments.size());
  bool any = false;
  for (std::size_t i = 0; i < shipments.size(); ++i) {
    const PlannedExperiment& planned = plan.experiments[i];
    report.experiments[i].project = planned.experiment.project;
    report.experiments[i].experiment = planned.experiment.id;
    report.experiments[i].problems = planned.problems;
    report.experiments[i].missing_ranks = planned.missing_ranks;
    report.experiments[i].warnings = planned.warnings;
    if (!planned.experiment.attempts.empty()) {
      report.experiments[i].world_size = planned.experiment.world_size();
    }
    shipments[i].planned = &planned;
    shipments[i].report = &report.experiments[i];
    find_pending(shipments[i], options);
    any = any || !shipments[i].pending.empty();
  }
  if (any) push_pending(shipments, options, tools);
  if (tools.stop.count() > 0) report.signal_number = tools.stop.signal_number();
  return report;
}

}  // namespace ranklog::sync
