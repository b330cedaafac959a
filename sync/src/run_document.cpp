#include "run_document.hpp"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "json_access.hpp"
#include "json_text.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/value.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;

constexpr const char* kRanklogKey = "_ranklog";

std::string dump(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::string rfc3339(std::int64_t unix_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kMicrosecond = 1'000;
  const std::time_t seconds = unix_ns / kSecond;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::string micros = std::to_string(unix_ns % kSecond / kMicrosecond);
  return std::string(text.data(), length) + "." + std::string(6 - micros.size(), '0') + micros + "Z";
}

const RankSegment& first_segment(const PlannedExperiment& planned, const PlannedRun& run) {
  return *planned.experiment.segments_of(run.rank).front();
}
const RankSegment& last_segment(const PlannedExperiment& planned, const PlannedRun& run) {
  return *planned.experiment.segments_of(run.rank).back();
}

json environment(const PlannedExperiment& planned, const PlannedRun& run) {
  const Identity& identity = last_segment(planned, run).info.identity;
  json out = {{"startedAt", rfc3339(first_segment(planned, run).info.start_time_ns)},
              {"writerId", sha256_hex(run.id).substr(0, 32)}};
  if (!identity.host.empty()) out["host"] = identity.host;
  if (!identity.program.empty()) out["program"] = identity.program;
  if (!identity.arguments.empty()) out["args"] = identity.arguments;
  if (!identity.git_remote.empty()) out["git"]["remote"] = identity.git_remote;
  if (!identity.git_commit.empty()) out["git"]["commit"] = identity.git_commit;
  return out;
}

json wandb_block(const PlannedExperiment& planned, const PlannedRun& run, const MetricRules& rules) {
  const json environment_of_run = environment(planned, run);
  // Without "t", W&B's own client takes the run for one that never began, and overwrites it on resume.
  return {{"t", {{"12", RANKLOG_VERSION}}},
          {"m", json::parse(rules.wandb_list())},
          {"e", {{environment_of_run["writerId"].get<std::string>(), environment_of_run}}}};
}

json attempt_list(const PlannedExperiment& planned) {
  json list = json::array();
  for (const Attempt& attempt : planned.experiment.attempts) {
    json entry = {{"number", attempt.number},
                  {"started_at", rfc3339(attempt.start_time_ns)},
                  {"ranks", attempt.segments.size()}};
    if (attempt.resume_step) entry["resume_step"] = *attempt.resume_step;
    list.push_back(std::move(entry));
  }
  return list;
}

json ranklog_block(const PlannedExperiment& planned, const PlannedRun& run, const HistorySurvey& survey) {
  std::uint64_t dropped = 0;
  for (const RankSegment* segment : planned.experiment.segments_of(run.rank))
    dropped += segment->info.dropped_rows;
  const Identity& identity = last_segment(planned, run).info.identity;
  json out = {{"version", RANKLOG_VERSION},
              {"project", planned.experiment.project},
              {"experiment", planned.experiment.id},
              {"recipe", json::parse(recipe_of(planned, run))},
              {"node", run.node},
              {"host", identity.host},
              {"ranks", run.ranks},
              {"state", to_string(run.state)},
              {"attempts", attempt_list(planned)},
              {"rows",
               {{"logged", survey.counts.rows},
                {"steps", survey.lines},
                {"superseded", survey.counts.superseded_rows},
                {"backward", survey.counts.backward_steps},
                {"dropped", dropped}}}};
  out["history"] = {{"lines", survey.claim.lines}, {"sha256", survey.claim.sha256}};
  if (!survey.left_out_steps.empty()) out["history"]["left_out"] = survey.left_out_steps;
  // The end that is reported is the training's; that rows are missing must be seen beside it.
  for (const Damage& damage : survey.damage) out["damage"].push_back(damage.place + ": " + damage.reason);
  if (!planned.missing_ranks.empty()) out["missing_ranks"] = planned.missing_ranks;
  return out;
}

// Members of the block and, beside them, what a user had under our names: JSON text, which may hold NaN.
std::string with_displaced(const json& block, const ConfigDocument& displaced) {
  if (displaced.empty()) return dump(block);
  JsonTree tree;
  for (const auto& [key, value] : block.items()) tree.set(key, dump(value));
  for (const auto& [key, value] : displaced) tree.set(KeyPath{{"displaced_config", key}}, value);
  return tree.text();
}

std::string yaml_key(const std::string& key) {
  std::string quoted;
  append_json_string(quoted, key);
  const bool plain = !key.empty() && key.find_first_not_of(
                                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                         "0123456789") == std::string::npos;
  const bool letter_first = plain && (key[0] < '0' || key[0] > '9');
  // Short words such as "no" or "null" would be read as values.
  return letter_first && key.size() > 5 ? key : quoted;
}

}  // namespace

std::string recipe_of(const PlannedExperiment& planned, const PlannedRun& run) {
  return dump({{"project", planned.experiment.project},
               {"experiment", planned.experiment.id},
               {"strategy", to_string(planned.strategy)},
               {"rank", run.rank}});
}

RecordedRun recorded_in_config(const std::string& config_text) {
  const json config = json::parse(strict_json(config_text), nullptr, /*allow_exceptions=*/false);
  const json& ours = at_path(config, {kRanklogKey, "value"});
  RecordedRun out;
  const json& recipe = at_path(ours, {"recipe"});
  if (recipe.is_object()) out.recipe = dump(recipe);
  const json& history = at_path(ours, {"history"});
  const std::string sha256 = text_at(history, {"sha256"});
  if (!sha256.empty()) out.claim = HistoryClaim{count_at(history, {"lines"}), sha256};
  const json& left_out = at_path(history, {"left_out"});
  for (std::size_t i = 0; left_out.is_array() && i < left_out.size(); ++i) {
    if (left_out[i].is_number_integer()) out.left_out.insert(left_out[i].get<std::int64_t>());
  }
  return out;
}

ConfigDocument config_document(const PlannedExperiment& planned, const PlannedRun& run, const RunFacts& facts,
                               const MetricRules& rules, const HistorySurvey& survey) {
  const Identity& identity = last_segment(planned, run).info.identity;
  ConfigDocument document;
  for (const ConfigEntry& entry : facts.config) document[entry.key] = entry.json;
  ConfigDocument displaced;
  const auto own = [&](const std::string& key, int value) {
    const std::string text = std::to_string(value);
    if (const auto user = document.find(key); user != document.end() && user->second != text) {
      displaced[key] = user->second;
    }
    document[key] = text;
  };
  own("world_size", identity.world_size);
  own("rank", identity.rank);
  own("local_rank", identity.local_rank);
  document["_wandb"] = dump(wandb_block(planned, run, rules));
  document[kRanklogKey] = with_displaced(ranklog_block(planned, run, survey), displaced);
  return document;
}

std::string config_json(const ConfigDocument& document) {
  std::string out = "{";
  for (const auto& [key, value] : document) {
    if (out.size() > 1) out.push_back(',');
    append_member_name(out, key);
    out += "{\"value\":" + value + "}";
  }
  return out + "}";
}

std::string config_yaml(const ConfigDocument& document) {
  std::string out;
  for (const auto& [key, value] : document) out += yaml_key(key) + ":\n    value: " + yaml_flow(value) + "\n";
  return out;
}

std::string environment_json(const PlannedExperiment& planned, const PlannedRun& run) {
  return dump(environment(planned, run), 2);
}

}  // namespace ranklog::sync
