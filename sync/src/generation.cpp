#include "generation.hpp"

#include <algorithm>

#include "conflict.hpp"
#include "run_document.hpp"

namespace ranklog::sync {
namespace {

constexpr int kMostGenerations = 100;
constexpr const char* kSupersededTag = "superseded";

// Only a run of our making; somebody else's is left alone.
void tag_superseded(Session& session, const PlannedExperiment& planned, const PlannedRun& run) {
  const RunAddress address = {planned.entity.empty() ? session.viewer.entity : planned.entity,
                              planned.project, run.id};
  const auto remote = session.api.find_run(address);
  if (!remote || recorded_in_config(remote->config).recipe != recipe_of(planned, run)) return;
  if (std::ranges::find(remote->tags, kSupersededTag) != remote->tags.end()) return;
  RunHeader header;
  header.storage_id = remote->storage_id;
  header.run_id = address.run_id;
  header.entity = address.entity;
  header.project = address.project;
  header.tags = remote->tags;
  header.tags.emplace_back(kSupersededTag);
  (void)session.api.upsert_run(header, session.viewer.username);
}

}  // namespace

std::string generation_id(const std::string& planned_id, int generation) {
  return generation == 1 ? planned_id : planned_id + "-g" + std::to_string(generation);
}

void upload_generation(Session& session, UploadState& state, const PlannedExperiment& experiment,
                       const PlannedRun& run, bool may_begin, RunReport& report) {
  const RunReport begun = report;
  PlannedRun actual = run;
  for (int generation = state.generation(run.id);; ++generation) {
    actual.id = generation_id(run.id, generation);
    report = begun;
    report.id = actual.id;
    try {
      upload_run(session, state, experiment, actual, report);
      return;
    } catch (const ConflictError&) {
      if (!may_begin || generation == kMostGenerations) throw;
    }
    tag_superseded(session, experiment, actual);
    state.save_generation(run.id, generation + 1);
  }
}

}  // namespace ranklog::sync
