#include "summary.hpp"

#include <algorithm>
#include <cmath>

#include "json_text.hpp"

namespace ranklog::sync {
namespace {

std::string json_text(ValueView value) {
  std::string out;
  append_json(out, value);
  return out;
}

std::string seconds_text(std::int64_t ns) {
  std::string out;
  append_seconds(out, ns);
  return out;
}

}  // namespace

SummaryBuilder::SummaryBuilder(const MetricRules& rules, const std::vector<KeyPath>& keys)
    : rules_(rules), keys_(keys), aggregates_(keys.size()) {}

void SummaryBuilder::add(const HistoryRow& row, std::int64_t runtime_ns) {
  any_ = true;
  step_ = row.step;
  time_ns_ = row.time_ns;
  runtime_ns_ = runtime_ns;
  for (const HistoryCell& cell : row.cells) {
    Aggregate& aggregate = aggregates_[cell.key];
    aggregate.last = Value(cell.value);
    aggregate.present = true;
    if (!cell.value.is_number()) continue;
    const double number = cell.value.as_double();
    if (aggregate.numbers++ == 0) aggregate.first = number;
    aggregate.sum += number;
    if (std::isnan(number)) continue;
    const bool only = aggregate.ordered++ == 0;
    aggregate.min = only ? number : std::min(aggregate.min, number);
    aggregate.max = only ? number : std::max(aggregate.max, number);
  }
}

std::string SummaryBuilder::json_of(std::uint32_t key) const {
  const Aggregate& aggregate = aggregates_[key];
  if (!aggregate.present) return "";
  const MetricDefinition* rule = rules_.of(key);
  const bool plain = rule == nullptr || rule->summary.empty();
  const auto wants = [&](std::string_view word) {
    return !plain && std::ranges::find(rule->summary, word) != rule->summary.end();
  };
  if (wants("none")) return "";
  if (plain || aggregate.numbers == 0) {
    return aggregate.last.view().kind() == ValueKind::kNull ? "" : json_text(aggregate.last.view());
  }
  JsonTree tree;
  const double nan = std::nan("");
  if (wants("min")) tree.set("min", json_text(aggregate.ordered > 0 ? aggregate.min : nan));
  if (wants("max")) tree.set("max", json_text(aggregate.ordered > 0 ? aggregate.max : nan));
  if (wants("mean")) tree.set("mean", json_text(aggregate.sum / static_cast<double>(aggregate.numbers)));
  if (wants("first")) tree.set("first", json_text(aggregate.first));
  if (wants("last")) tree.set("last", json_text(aggregate.last.view()));
  return tree.text();
}

std::string SummaryBuilder::json(const std::vector<SummaryOverride>& overrides,
                                 std::int64_t runtime_ns) const {
  constexpr std::int64_t kSecond = 1'000'000'000;
  JsonTree tree;
  const auto overridden = [&](const std::string& name) {
    return std::ranges::any_of(overrides, [&](const SummaryOverride& entry) { return entry.key == name; });
  };
  for (std::uint32_t key = 0; key < keys_.size(); ++key) {
    std::string value = json_of(key);
    if (!value.empty() && !overridden(keys_[key].display())) tree.set(keys_[key], std::move(value));
  }
  for (const SummaryOverride& entry : overrides) tree.set(KeyPath::parse(entry.key), entry.json);
  if (any_) {
    tree.set("_step", std::to_string(step_));
    tree.set("_timestamp", seconds_text(time_ns_));
    tree.set("_runtime", seconds_text(runtime_ns_));
  }
  tree.set("_wandb", "{\"runtime\":" + std::to_string(std::max<std::int64_t>(0, runtime_ns) / kSecond) + "}");
  return tree.text();
}

}  // namespace ranklog::sync
