#pragma once
// A run's summary, derived from its rows.

#include <cstdint>
#include <string>
#include <vector>

#include "metric_rules.hpp"
#include "ranklog/schema/history.hpp"
#include "ranklog/schema/records.hpp"
#include "ranklog/schema/value.hpp"

namespace ranklog::sync {

// Per key: the last value, or an object with the aggregates that its definition asks for. Minimum and maximum
// are over numbers that are not NaN; the mean is NaN if any value was.
class SummaryBuilder {
 public:
  // `rules` and `keys` must outlive it.
  SummaryBuilder(const MetricRules& rules, const std::vector<KeyPath>& keys);

  void add(const HistoryRow& row, std::int64_t runtime_ns);

  // `overrides` win over what was derived. `runtime_ns`: of the whole run.
  [[nodiscard]] std::string json(const std::vector<SummaryOverride>& overrides,
                                 std::int64_t runtime_ns) const;

 private:
  struct Aggregate {
    Value last;
    bool present = false;
    std::uint64_t numbers = 0;  // NaN included
    std::uint64_t ordered = 0;  // not NaN: min and max are over these
    double first = 0, min = 0, max = 0, sum = 0;
  };
  [[nodiscard]] std::string json_of(std::uint32_t key) const;  // empty: not in the summary

  const MetricRules& rules_;
  const std::vector<KeyPath>& keys_;
  std::vector<Aggregate> aggregates_;
  std::int64_t step_ = 0, time_ns_ = 0, runtime_ns_ = 0;
  bool any_ = false;
};

}  // namespace ranklog::sync
