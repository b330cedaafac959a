#include "metric_rules.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

namespace ranklog::sync {
namespace {

using nlohmann::json;

// Field numbers of W&B's protocol. Frozen.
constexpr std::array<std::pair<std::string_view, int>, 6> kSummaryNumbers = {
    {{"min", 1}, {"max", 2}, {"mean", 3}, {"last", 5}, {"none", 6}, {"first", 8}}};
constexpr int kOptionStepSync = 1;
constexpr int kOptionHidden = 2;
constexpr int kOptionDefined = 3;
constexpr int kGoalMinimize = 1;
constexpr int kGoalMaximize = 2;

bool is_glob(const std::string& name) {
  return name.ends_with('*');
}

json summary_numbers(const MetricDefinition& definition) {
  json list = json::array();
  for (const auto& [word, number] : kSummaryNumbers) {
    if (std::ranges::find(definition.summary, word) != definition.summary.end()) list.push_back(number);
  }
  return list;
}

json option_numbers(const MetricDefinition& definition) {
  json list = json::array();
  if (definition.step_sync) list.push_back(kOptionStepSync);
  if (definition.hidden) list.push_back(kOptionHidden);
  if (!is_glob(definition.name)) list.push_back(kOptionDefined);
  return list;
}

json element_of(const std::string& name, const MetricDefinition* definition) {
  json element = {{"1", name}};
  if (definition == nullptr) return element;
  element["6"] = option_numbers(*definition);
  element["7"] = summary_numbers(*definition);
  if (definition->goal == "minimize") element["8"] = kGoalMinimize;
  if (definition->goal == "maximize") element["8"] = kGoalMaximize;
  return element;
}

}  // namespace

MetricRules::MetricRules(const std::vector<MetricDefinition>& definitions, const std::vector<KeyPath>& keys) {
  std::map<std::string, MetricDefinition> latest;
  for (const MetricDefinition& definition : definitions) latest[definition.name] = definition;
  for (auto& [name, definition] : latest) definitions_.push_back(std::move(definition));
  std::map<std::string, std::uint32_t> index;
  for (const KeyPath& key : keys) {
    index.emplace(key.display(), static_cast<std::uint32_t>(names_.size()));
    names_.push_back(key.display());
  }
  for (const std::string& name : names_) {
    by_key_.push_back(find(name));
    step_key_.emplace_back();
    const MetricDefinition* rule = by_key_.back();
    if (rule == nullptr || !rule->step_sync || rule->step_metric == name) continue;
    if (const auto step = index.find(rule->step_metric); step != index.end()) step_key_.back() = step->second;
  }
}

const MetricDefinition* MetricRules::find(const std::string& key) const {
  const MetricDefinition* best = nullptr;
  for (const MetricDefinition& definition : definitions_) {
    if (definition.name == key) return &definition;
    if (!is_glob(definition.name) || key.starts_with('_')) continue;  // '_' marks what is internal to W&B
    const std::string_view prefix(definition.name.data(), definition.name.size() - 1);
    if (!key.starts_with(prefix)) continue;
    if (best == nullptr || best->name.size() < definition.name.size()) best = &definition;
  }
  return best;
}

std::string MetricRules::wandb_list() const {
  std::map<std::string, const MetricDefinition*> elements;
  for (const MetricDefinition& definition : definitions_) {
    if (!is_glob(definition.name)) elements[definition.name] = &definition;
  }
  for (std::size_t key = 0; key < names_.size(); ++key) {
    if (by_key_[key] != nullptr) elements[names_[key]] = by_key_[key];
  }
  // A step metric must be an element itself.
  std::vector<std::string> steps;
  for (const auto& [name, definition] : elements) {
    if (!definition->step_metric.empty()) steps.push_back(definition->step_metric);
  }
  for (const std::string& step : steps) elements.try_emplace(step, nullptr);

  json list = json::array();
  for (const auto& [name, definition] : elements) {
    list.push_back(element_of(name, definition));
    if (definition == nullptr || definition->step_metric.empty()) continue;
    const auto step = elements.find(definition->step_metric);
    list.back()["5"] = std::distance(elements.begin(), step) + 1;
  }
  return list.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace ranklog::sync
