#include "run_facts.hpp"

#include <algorithm>

namespace ranklog::sync {
namespace {

// End of the rank's activity in this file: its end record, else its last row. The heartbeat is no help: a
// copied folder has another one.
std::int64_t last_activity_ns(const RankFile& file) {
  std::int64_t last = file.info().end_time_ns.value_or(file.info().start_time_ns);
  for (const RowGroupInfo& group : file.row_groups()) last = std::max(last, group.max_time_ns);
  return last;
}

void add_span(std::map<int, AttemptSpan>& spans, int attempt, const RankFile& file) {
  const std::int64_t start = file.info().start_time_ns;
  auto [entry, is_new] = spans.try_emplace(attempt);
  AttemptSpan& span = entry->second;
  if (is_new) span.start_ns = start;
  span.active_ns = std::max(span.active_ns, last_activity_ns(file) - span.start_ns);
}

}  // namespace

std::int64_t RunFacts::runtime_ns(int attempt, std::int64_t time_ns) const {
  const auto span = spans.find(attempt);
  if (span == spans.end()) return 0;
  return span->second.before_ns + time_ns - span->second.start_ns;
}

std::int64_t RunFacts::total_active_ns() const {
  if (spans.empty()) return 0;
  const AttemptSpan& last = spans.rbegin()->second;
  return last.before_ns + last.active_ns;
}

RunFacts read_facts(const Experiment& experiment, int rank) {
  RunFacts facts;
  std::map<std::string, ConfigEntry> config;
  std::map<std::string, SummaryOverride> overrides;
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) {
      if (segment.info.identity.rank != rank) continue;
      const RankFile file = RankFile::open(segment.path);
      for (ConfigEntry& entry : file.config()) config[entry.key] = std::move(entry);
      for (SummaryOverride& entry : file.summary_overrides()) overrides[entry.key] = std::move(entry);
      for (MetricDefinition& entry : file.metric_definitions()) facts.definitions.push_back(std::move(entry));
      add_span(facts.spans, attempt.number, file);
    }
  }
  for (auto& [key, entry] : config) facts.config.push_back(std::move(entry));
  for (auto& [key, entry] : overrides) facts.overrides.push_back(std::move(entry));
  std::int64_t before = 0;
  for (auto& [number, span] : facts.spans) {
    span.before_ns = before;
    before += span.active_ns;
  }
  return facts;
}

}  // namespace ranklog::sync
