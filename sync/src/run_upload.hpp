#pragma once
// One run to the server, from the first question to its end.

#include <set>
#include <string>

#include "ranklog/sync/http_client.hpp"
#include "ranklog/sync/progress.hpp"
#include "ranklog/sync/report.hpp"
#include "ranklog/sync/stop.hpp"
#include "upload_state.hpp"
#include "wandb_api.hpp"

namespace ranklog::sync {

// What all runs of a push share.
struct Session {
  HttpClient& http;
  const ServerAccess& access;
  WandbApi& api;
  Viewer viewer;
  std::set<std::string> features;
  Progress& progress;
  const StopFlag& stop;
};

[[nodiscard]] std::string run_url(const ServerSettings& server, const RunAddress& run);

// Under `run.id`. Fills `report`, also when it throws. Throws ConflictError where that id cannot go on, Error
// for what else keeps the run from being complete; faults of single items are listed in the report instead.
void upload_run(Session& session, UploadState& state, const PlannedExperiment& experiment,
                const PlannedRun& run, RunReport& report);

}  // namespace ranklog::sync
