#pragma once
// One rank's history as a chart has it: every step once, attempts joined.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ranklog/schema/experiment.hpp"

namespace ranklog {

struct HistoryCell {
  std::uint32_t key = 0;  // index into RankHistory::keys()
  ValueView value;        // valid until the next call of next()
};

// All values of one step.
struct HistoryRow {
  std::int64_t step = 0;
  std::int64_t time_ns = 0;        // of the last log() call that contributed
  int attempt = 0;                 // of that call
  std::vector<HistoryCell> cells;  // by key index, each key once
};

struct HistoryCounts {
  std::uint64_t rows = 0;             // log() calls found, superseded ones included
  std::uint64_t steps = 0;            // rows given out
  std::uint64_t superseded_rows = 0;  // log() calls that a later attempt or a rewind replaced
  // Of the others: log() calls whose step was below that of an earlier call in the same file.
  std::uint64_t backward_steps = 0;
};

// Reads the files of one rank in step order. Superseded rows (Supersession) are left out; for one step and
// key the later value (by attempt, then sequence) wins. The same files give the same rows, in whatever order
// they were passed.
//
// Memory: the row groups whose step ranges overlap the current step, not the whole history (steps that jump
// back and forth over the whole range need the whole history). Threads: one at a time. Errors: a damaged
// chunk is left out and listed in damage(); the constructor throws what RankFile::open() throws.
class RankHistory {
 public:
  RankHistory(const Experiment& experiment, int rank);
  ~RankHistory();
  RankHistory(RankHistory&&) noexcept;

  // Keys of all files of this rank, in order of first appearance.
  [[nodiscard]] const std::vector<KeyPath>& keys() const noexcept;
  // False at the end. The row and what it points to are reused by the next call.
  [[nodiscard]] bool next(HistoryRow& row);
  [[nodiscard]] const HistoryCounts& counts() const noexcept;  // complete at the end
  [[nodiscard]] const std::vector<Damage>& damage() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ranklog
