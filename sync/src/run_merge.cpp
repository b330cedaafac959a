#include "run_merge.hpp"

#include <algorithm>

namespace ranklog::sync {
namespace {

// The first step that a rank which still writes may still change: its newest, or where it resumes.
std::optional<std::int64_t> open_step(const Experiment& experiment, int rank) {
  const auto segments = experiment.segments_of(rank);
  if (segments.empty()) return std::nullopt;
  const FileInfo& newest = segments.back()->info;
  return newest.last_step ? newest.last_step : newest.identity.resume_step;
}

}  // namespace

RunMerge::RunMerge(const Experiment& experiment, int rank, const RunFacts& facts, bool still_running)
    : facts_(facts),
      history_(experiment, rank),
      rules_(facts.definitions, history_.keys()),
      printer_(history_.keys()),
      summary_(rules_, history_.keys()),
      is_step_metric_(history_.keys().size()),
      latest_(history_.keys().size()) {
  if (still_running) held_from_ = open_step(experiment, rank);
  for (std::uint32_t key = 0; key < history_.keys().size(); ++key) {
    if (const auto step = rules_.filled_step_key(key)) is_step_metric_[*step] = true;
  }
}

bool RunMerge::next(std::string& line) {
  do {
    if (!history_.next(row_)) return false;
  } while (held_from_ && row_.step >= *held_from_);
  fill_step_metrics();
  const std::int64_t runtime_ns = facts_.runtime_ns(row_.attempt, row_.time_ns);
  summary_.add(row_, runtime_ns);
  line.clear();
  printer_.append(line, row_, runtime_ns);
  return true;
}

// step_sync: W&B's client does this while logging, and charts over a custom step need it.
void RunMerge::fill_step_metrics() {
  std::vector<std::uint32_t> wanted;
  for (const HistoryCell& cell : row_.cells) {
    if (is_step_metric_[cell.key]) latest_[cell.key] = Value(cell.value);
    if (const auto step = rules_.filled_step_key(cell.key)) wanted.push_back(*step);
  }
  for (const std::uint32_t key : wanted) {
    const bool present =
        std::ranges::any_of(row_.cells, [&](const HistoryCell& cell) { return cell.key == key; });
    if (!present && latest_[key]) row_.cells.push_back({key, latest_[key]->view()});
  }
}

std::string RunMerge::summary() const {
  return summary_.json(facts_.overrides, facts_.total_active_ns());
}

}  // namespace ranklog::sync
