#pragma once
// The history of one run, line by line, as it goes to W&B.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "history_line.hpp"
#include "metric_rules.hpp"
#include "ranklog/schema/history.hpp"
#include "run_facts.hpp"
#include "summary.hpp"

namespace ranklog::sync {

// The same files give the same lines. Of a rank that still writes, its newest step is held back: the line
// could still change.
class RunMerge {
 public:
  // `experiment` and `facts` must outlive it. Throws what RankHistory throws.
  RunMerge(const Experiment& experiment, int rank, const RunFacts& facts, bool still_running);
  RunMerge(const RunMerge&) = delete;
  RunMerge& operator=(const RunMerge&) = delete;

  // Puts the next line into `line`, without a newline; false at the end.
  [[nodiscard]] bool next(std::string& line);
  [[nodiscard]] std::int64_t step() const noexcept { return row_.step; }  // of the last line

  [[nodiscard]] const MetricRules& rules() const noexcept { return rules_; }
  [[nodiscard]] const std::vector<KeyPath>& keys() const noexcept { return history_.keys(); }
  // Complete at the end.
  [[nodiscard]] const HistoryCounts& counts() const noexcept { return history_.counts(); }
  [[nodiscard]] const std::vector<Damage>& damage() const noexcept { return history_.damage(); }
  [[nodiscard]] std::string summary() const;

 private:
  void fill_step_metrics();

  const RunFacts& facts_;
  RankHistory history_;
  MetricRules rules_;
  HistoryLinePrinter printer_;
  SummaryBuilder summary_;
  std::optional<std::int64_t> held_from_;  // steps from here on may still change
  HistoryRow row_;
  std::vector<bool> is_step_metric_;
  std::vector<std::optional<Value>> latest_;  // of step metrics, by key
};

}  // namespace ranklog::sync
