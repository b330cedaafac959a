#include "ranklog/schema/history.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <ranges>
#include <tuple>

#include "backward_counter.hpp"
#include "ranklog/schema/supersession.hpp"

namespace ranklog {
namespace {

// One file of the rank.
struct Source {
  RankFile file;
  int attempt = 0;
  Supersession superseded;
  std::vector<std::uint32_t> key_index;  // of the file's keys, in RankHistory::keys()
  BackwardCounter backward;
  // Of its row groups that are still to be loaded, in the order of loading: the smallest sequence number from
  // here on. Ends with the greatest number.
  std::vector<std::uint64_t> least_sequence_ahead;
  std::size_t groups_loaded = 0;
};

// A row group that waits for its steps to come.
struct PendingGroup {
  std::int64_t min_step = 0;
  std::size_t source = 0;
  std::size_t index = 0;  // of RankFile::row_groups()
};

// A row group that has been loaded, read in the order of its steps.
struct ActiveGroup {
  RowGroup rows;
  std::size_t source = 0;
  std::vector<std::uint32_t> keys;   // of its columns, ascending: indices into RankHistory::keys()
  std::vector<std::uint32_t> order;  // of its rows by (step, sequence), without superseded ones
  std::size_t next = 0;
  std::uint64_t first_sequence = 0;

  [[nodiscard]] bool exhausted() const noexcept { return next == order.size(); }
  [[nodiscard]] std::uint32_t row() const noexcept { return order[next]; }
  [[nodiscard]] std::int64_t step() const noexcept { return rows.step[row()]; }
};

// One log() call that contributes to the step.
struct Contribution {
  std::size_t source = 0;  // sources are in the order of attempts
  std::uint64_t sequence = 0;
  const ActiveGroup* group = nullptr;
  std::uint32_t row = 0;
};

struct NextStep {
  std::int64_t step = 0;
  std::size_t slot = 0;
};

// The heap's front is the smallest.
void push_step(std::vector<NextStep>& heap, NextStep step) {
  heap.push_back(step);
  std::ranges::push_heap(heap, std::ranges::greater{}, &NextStep::step);
}
NextStep pop_step(std::vector<NextStep>& heap) {
  std::ranges::pop_heap(heap, std::ranges::greater{}, &NextStep::step);
  const NextStep step = heap.back();
  heap.pop_back();
  return step;
}

std::vector<std::uint32_t> rows_by_step(const RowGroup& group) {
  std::vector<std::uint32_t> order(group.rows());
  std::iota(order.begin(), order.end(), 0u);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(group.step[a], group.sequence[a]) < std::tie(group.step[b], group.sequence[b]);
  };
  if (!std::ranges::is_sorted(order, before)) std::ranges::sort(order, before);
  return order;
}

void sort_columns(ActiveGroup& group, const std::vector<std::uint32_t>& key_index) {
  const auto index_of = [&](const Column& column) { return key_index[column.key()]; };
  if (!std::ranges::is_sorted(group.rows.columns, {}, index_of)) {
    std::ranges::sort(group.rows.columns, {}, index_of);
  }
  for (const Column& column : group.rows.columns) group.keys.push_back(index_of(column));
}

}  // namespace

struct RankHistory::Impl {
  Impl(const Experiment& experiment, int rank);

  void open_sources(const Experiment& experiment, int rank);
  void find_superseded(const Experiment& experiment);
  void index_keys();
  void line_up_groups();
  void release_exhausted();
  void load_groups_in_reach();
  void load(const PendingGroup& pending);
  [[nodiscard]] std::size_t keep(ActiveGroup group);
  void push(std::size_t slot);
  void collect(std::int64_t step);
  void count_backward_steps();
  void emit_one(const Contribution& only, HistoryRow& row);
  void emit_merged(HistoryRow& row);
  void prune(std::size_t source);

  std::vector<Source> sources;
  std::vector<KeyPath> keys;
  std::vector<PendingGroup> pending;  // by min_step, the next at the back
  std::vector<std::optional<ActiveGroup>> slots;
  std::vector<std::size_t> free_slots;
  std::vector<std::size_t> exhausted;       // slots that the last row given out may still point into
  std::vector<NextStep> heap;               // of the active groups that have rows left
  std::vector<Contribution> contributions;  // to the current step, in the order in which they win
  std::vector<std::uint64_t> sequences;
  // Where the key's cell stands in the row that is being merged, if `stamp` is that row's.
  struct CellPlace {
    std::uint64_t stamp = 0;
    std::size_t cell = 0;
  };
  std::vector<CellPlace> places;
  HistoryCounts counts;
  std::vector<Damage> damage;
};

RankHistory::Impl::Impl(const Experiment& experiment, int rank) {
  open_sources(experiment, rank);
  index_keys();
  line_up_groups();
}

void RankHistory::Impl::open_sources(const Experiment& experiment, int rank) {
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) {
      if (segment.info.identity.rank != rank) continue;
      sources.push_back({RankFile::open(segment.path), attempt.number, {}, {}, {}, {}, 0});
      for (Damage found : sources.back().file.damage()) {
        found.place = segment.path.filename().string() + ", " + found.place;
        damage.push_back(std::move(found));
      }
    }
  }
  find_superseded(experiment);
}

// From the last file to the first, as rewinds reach back into earlier files.
void RankHistory::Impl::find_superseded(const Experiment& experiment) {
  std::optional<std::int64_t> rewound_to;
  for (Source& source : std::views::reverse(sources)) {
    auto from = experiment.superseded_from(source.attempt);
    if (rewound_to) from = std::min(from.value_or(*rewound_to), *rewound_to);
    source.superseded = Supersession(from, source.file.rewinds());
    const auto& own = source.file.info().rewind_step;
    if (own) rewound_to = std::min(rewound_to.value_or(*own), *own);
  }
}

void RankHistory::Impl::index_keys() {
  std::map<std::string, std::uint32_t> known;
  for (Source& source : sources) {
    for (const KeyPath& path : source.file.keys()) {
      const auto [entry, is_new] = known.try_emplace(path.display(), static_cast<std::uint32_t>(keys.size()));
      if (is_new) keys.push_back(path);
      source.key_index.push_back(entry->second);
    }
  }
  places.resize(keys.size());
}

void RankHistory::Impl::line_up_groups() {
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const auto groups = sources[s].file.row_groups();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!sources[s].superseded.covers_all(groups[i])) {
        pending.push_back({groups[i].min_step, s, i});
      } else {
        counts.rows += groups[i].rows;
        counts.superseded_rows += groups[i].rows;
      }
    }
  }
  std::ranges::sort(pending, [](const PendingGroup& a, const PendingGroup& b) {
    return std::tie(a.min_step, a.source, a.index) > std::tie(b.min_step, b.source, b.index);
  });
  // From the last to be loaded to the first.
  for (Source& source : sources) {
    source.least_sequence_ahead.push_back(std::numeric_limits<std::uint64_t>::max());
  }
  for (const PendingGroup& group : pending) {
    auto& ahead = sources[group.source].least_sequence_ahead;
    const auto groups = sources[group.source].file.row_groups();
    ahead.push_back(std::min(ahead.back(), groups[group.index].first_sequence));
  }
  for (Source& source : sources) std::ranges::reverse(source.least_sequence_ahead);
}

void RankHistory::Impl::release_exhausted() {
  for (const std::size_t slot : exhausted) {
    slots[slot].reset();
    free_slots.push_back(slot);
  }
  exhausted.clear();
}

void RankHistory::Impl::load_groups_in_reach() {
  while (!pending.empty() && (heap.empty() || pending.back().min_step <= heap.front().step)) {
    const PendingGroup next = pending.back();
    pending.pop_back();
    load(next);
  }
}

void RankHistory::Impl::load(const PendingGroup& group) {
  Source& source = sources[group.source];
  ++source.groups_loaded;
  ActiveGroup active;
  const std::size_t known_damage = source.file.damage().size();
  try {
    active.rows = source.file.load(group.index);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    const std::vector<Damage> found = source.file.damage();
    for (std::size_t i = known_damage; i < found.size(); ++i) {
      damage.push_back({source.file.path().filename().string() + ", " + found[i].place, found[i].reason});
    }
    return;
  }
  active.source = group.source;
  active.first_sequence = source.file.row_groups()[group.index].first_sequence;
  sort_columns(active, source.key_index);
  active.order = rows_by_step(active.rows);
  counts.rows += active.order.size();
  if (source.superseded.may_cover(source.file.row_groups()[group.index])) {
    counts.superseded_rows += std::erase_if(active.order, [&](std::uint32_t row) {
      return source.superseded.covers(active.rows.sequence[row], active.rows.step[row]);
    });
  }
  if (!active.exhausted()) push(keep(std::move(active)));
}

std::size_t RankHistory::Impl::keep(ActiveGroup group) {
  if (free_slots.empty()) {
    free_slots.push_back(slots.size());
    slots.emplace_back();
  }
  const std::size_t slot = free_slots.back();
  free_slots.pop_back();
  slots[slot] = std::move(group);
  return slot;
}

void RankHistory::Impl::push(std::size_t slot) {
  push_step(heap, {slots[slot]->step(), slot});
}

// Takes all rows of `step` out of the active groups.
void RankHistory::Impl::collect(std::int64_t step) {
  contributions.clear();
  while (!heap.empty() && heap.front().step == step) {
    const std::size_t slot = pop_step(heap).slot;
    ActiveGroup& group = *slots[slot];
    for (; !group.exhausted() && group.step() == step; ++group.next) {
      contributions.push_back({group.source, group.rows.sequence[group.row()], &group, group.row()});
    }
    group.exhausted() ? exhausted.push_back(slot) : push(slot);
  }
  if (contributions.size() > 1) {
    std::ranges::sort(contributions, [](const Contribution& a, const Contribution& b) {
      return std::tie(a.source, a.sequence) < std::tie(b.source, b.sequence);
    });
  }
}

void RankHistory::Impl::count_backward_steps() {
  for (std::size_t i = 0; i < contributions.size();) {
    const std::size_t source = contributions[i].source;
    sequences.clear();
    for (; i < contributions.size() && contributions[i].source == source; ++i) {
      sequences.push_back(contributions[i].sequence);
    }
    BackwardCounter& backward = sources[source].backward;
    const std::uint64_t before = backward.count();
    backward.add_step(sequences);
    counts.backward_steps += backward.count() - before;
    if (backward.has_grown()) prune(source);
  }
}

void RankHistory::Impl::prune(std::size_t index) {
  Source& source = sources[index];
  std::uint64_t least = source.least_sequence_ahead[source.groups_loaded];
  for (const NextStep& active : heap) {
    const ActiveGroup& group = *slots[active.slot];
    if (group.source == index) least = std::min(least, group.first_sequence);
  }
  source.backward.forget_below(least);
}

void RankHistory::Impl::emit_one(const Contribution& only, HistoryRow& row) {
  const ActiveGroup& group = *only.group;
  row.cells.resize(group.keys.size());
  for (std::size_t i = 0; i < group.keys.size(); ++i) {
    row.cells[i] = {group.keys[i], group.rows.columns[i].at(only.row)};
  }
}

void RankHistory::Impl::emit_merged(HistoryRow& row) {
  row.cells.clear();
  const std::uint64_t stamp = counts.steps;  // one greater for every row
  for (const Contribution& contribution : contributions) {
    const ActiveGroup& group = *contribution.group;
    for (std::size_t i = 0; i < group.keys.size(); ++i) {
      CellPlace& place = places[group.keys[i]];
      if (place.stamp != stamp) {
        place = {stamp, row.cells.size()};
        row.cells.emplace_back();
      }
      row.cells[place.cell] = {group.keys[i], group.rows.columns[i].at(contribution.row)};
    }
  }
  std::ranges::sort(row.cells, {}, &HistoryCell::key);
}

RankHistory::RankHistory(const Experiment& experiment, int rank)
    : impl_(std::make_unique<Impl>(experiment, rank)) {}
RankHistory::~RankHistory() = default;
RankHistory::RankHistory(RankHistory&&) noexcept = default;

const std::vector<KeyPath>& RankHistory::keys() const noexcept {
  return impl_->keys;
}

bool RankHistory::next(HistoryRow& row) {
  Impl& history = *impl_;
  history.release_exhausted();
  history.load_groups_in_reach();
  if (history.heap.empty()) return false;
  row.step = history.heap.front().step;
  history.collect(row.step);
  history.count_backward_steps();
  ++history.counts.steps;
  const Contribution& last = history.contributions.back();
  row.time_ns = last.group->rows.time_ns[last.row];
  row.attempt = history.sources[last.source].attempt;
  if (history.contributions.size() == 1) {
    history.emit_one(last, row);
  } else {
    history.emit_merged(row);
  }
  return true;
}

const HistoryCounts& RankHistory::counts() const noexcept {
  return impl_->counts;
}
const std::vector<Damage>& RankHistory::damage() const noexcept {
  return impl_->damage;
}

}  // namespace ranklog
