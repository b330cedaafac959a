#pragma once
// A run that cannot go on under its id goes up beside it, as the next generation, when it is told to.

#include <string>

#include "run_upload.hpp"

namespace ranklog::sync {

// "id" for the first, "id-g2" for the second.
[[nodiscard]] std::string generation_id(const std::string& planned_id, int generation);

// Uploads the run under the generation that the state knows. Where that one conflicts with the server and
// `may_begin`, tags it as superseded there and goes on to the next. Throws as upload_run() does.
void upload_generation(Session& session, UploadState& state, const PlannedExperiment& experiment,
                       const PlannedRun& run, bool may_begin, RunReport& report);

}  // namespace ranklog::sync
