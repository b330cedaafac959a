#pragma once
// The documents that describe a run at W&B: config, environment, and the files made of them.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "history_upload.hpp"
#include "metric_rules.hpp"
#include "ranklog/sync/plan.hpp"
#include "run_facts.hpp"

namespace ranklog::sync {

// Top-level config keys and the JSON text of their values.
using ConfigDocument = std::map<std::string, std::string>;

// How a run's rows are made. Two uploads of one run must agree in it.
[[nodiscard]] std::string recipe_of(const PlannedExperiment& experiment, const PlannedRun& run);
// What the config of a run at the server says about how it was made.
struct RecordedRun {
  std::string recipe;                 // empty: it is not of our making
  std::optional<HistoryClaim> claim;  // of the lines that are there or were about to be
  std::set<std::int64_t> left_out;    // steps whose line the server found too large
};
[[nodiscard]] RecordedRun recorded_in_config(const std::string& config_json);

// The rank's config, then world_size, rank, local_rank; `_wandb` with what W&B needs; `_ranklog` with what
// became of the experiment. A user's own value for one of the three names is kept under
// _ranklog.displaced_config.
[[nodiscard]] ConfigDocument config_document(const PlannedExperiment& experiment, const PlannedRun& run,
                                             const RunFacts& facts, const MetricRules& rules,
                                             const HistorySurvey& survey);

[[nodiscard]] std::string config_json(const ConfigDocument& document);  // {"key":{"value":...},...}
[[nodiscard]] std::string config_yaml(const ConfigDocument& document);

// wandb-metadata.json
[[nodiscard]] std::string environment_json(const PlannedExperiment& experiment, const PlannedRun& run);

}  // namespace ranklog::sync
