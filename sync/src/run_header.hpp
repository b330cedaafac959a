#pragma once
// The short fields of a run (name, group, tags ...), and which of them the server has yet to be told.

#include <string>

#include "ranklog/sync/plan.hpp"
#include "wandb_api.hpp"

namespace ranklog::sync {

// All fields as the files have them, without the config.
[[nodiscard]] RunHeader run_header(const PlannedExperiment& experiment, const PlannedRun& run,
                                   const RunAddress& address);

// The short fields as JSON text, to be kept as what the server has confirmed.
[[nodiscard]] std::string header_text(const RunHeader& header);
// The same of those alone that people change in W&B's pages: name, notes and tags.
[[nodiscard]] std::string editable_text(const RunHeader& header);

// `wanted` without the fields that stand in `confirmed` alike: to send those again would undo what was
// changed at the server. Empty fields are left unchanged there.
[[nodiscard]] RunHeader unconfirmed(const RunHeader& wanted, const std::string& confirmed);
// Whether there is anything in it to send, the config included.
[[nodiscard]] bool says_anything(const RunHeader& header);

}  // namespace ranklog::sync
