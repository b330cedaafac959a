#pragma once
// What the files of one rank say about its run besides rows.

#include <cstdint>
#include <map>
#include <vector>

#include "ranklog/schema/experiment.hpp"

namespace ranklog::sync {

// When a rank was active in one attempt.
struct AttemptSpan {
  std::int64_t start_ns = 0;   // Unix, the rank's own clock
  std::int64_t active_ns = 0;  // up to its end record, else to its last row
  std::int64_t before_ns = 0;  // active time of the attempts before it
};

struct RunFacts {
  std::vector<ConfigEntry> config;            // each key once, the latest value, by key
  std::vector<MetricDefinition> definitions;  // oldest first
  std::vector<SummaryOverride> overrides;     // each key once, the latest value, by key
  std::map<int, AttemptSpan> spans;           // by attempt number

  // Active time since the run's start, attempts joined without the gaps between them.
  [[nodiscard]] std::int64_t runtime_ns(int attempt, std::int64_t time_ns) const;
  [[nodiscard]] std::int64_t total_active_ns() const;
};

// Throws what RankFile::open() throws.
[[nodiscard]] RunFacts read_facts(const Experiment& experiment, int rank);

}  // namespace ranklog::sync
