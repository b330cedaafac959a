#include "ranklog/sql/point_reader.hpp"

#include <algorithm>
#include <utility>

namespace ranklog::sql {

PointReader::PointReader(Catalog& catalog, PointSelection selection)
    : catalog_(catalog), selection_(std::move(selection)) {}

bool PointReader::next(Point& point) {
  while (next_column_ >= columns_.size()) {
    if (!next_row() && !next_group() && !next_file()) return false;
  }
  const WantedColumn& wanted = columns_[next_column_++];
  point.source = source_;
  point.ordinal = open_->values_before[next_group_ - 1] + row_ * group_columns_ + wanted.position;
  point.sequence = group_->sequence[row_];
  point.step = group_->step[row_];
  point.time_ns = group_->time_ns[row_];
  point.superseded = row_superseded_;
  point.key = &open_->keys[wanted.column->key()];
  point.value = wanted.column->at(row_);
  return true;
}

bool PointReader::next_file() {
  while (next_file_ < catalog_.files().size()) {
    source_ = &catalog_.files()[next_file_++];
    if (selection_.file && !selection_.file(*source_)) continue;
    open_ = catalog_.open(*source_);
    if (open_ == nullptr) continue;
    key_wanted_.clear();
    for (const std::string& key : open_->keys) {
      key_wanted_.push_back(!selection_.key || selection_.key(key));
    }
    next_group_ = 0;
    return true;
  }
  return false;
}

bool PointReader::next_group() {
  if (open_ == nullptr) return false;
  while (next_group_ < open_->file.row_groups().size()) {
    const std::size_t index = next_group_++;
    const RowGroupInfo& info = open_->file.row_groups()[index];
    if (!wanted(info)) continue;
    group_ = catalog_.load(open_, index, wanted_keys(info));
    if (group_ == nullptr) continue;
    pick_columns(info);
    next_column_ = columns_.size();
    next_row_ = 0;
    return true;
  }
  return false;
}

bool PointReader::next_row() {
  if (group_ == nullptr || columns_.empty()) return false;
  while (next_row_ < group_->rows()) {
    row_ = next_row_++;
    const std::int64_t step = group_->step[row_];
    if (!selection_.steps.holds(step)) continue;
    row_superseded_ = open_->superseded.covers(group_->sequence[row_], step);
    if (row_superseded_ && !selection_.superseded) continue;
    next_column_ = 0;
    return true;
  }
  return false;
}

bool PointReader::wanted(const RowGroupInfo& info) const {
  if (!selection_.steps.overlaps(info.min_step, info.max_step)) return false;
  if (!selection_.superseded && open_->superseded.covers_all(info)) return false;
  if (selection_.chunk && !selection_.chunk(info)) return false;
  for (const SeriesStats& series : info.series) {
    if (key_wanted_[series.key]) return true;
  }
  return false;
}

// Empty: all of them.
std::optional<std::vector<KeyId>> PointReader::wanted_keys(const RowGroupInfo& info) const {
  std::vector<KeyId> keys;
  for (const SeriesStats& series : info.series) {
    if (key_wanted_[series.key]) keys.push_back(series.key);
  }
  if (keys.size() == info.series.size()) return std::nullopt;
  std::ranges::sort(keys);
  return keys;
}

// The group that was loaded may hold all columns, or only some that are wanted; in the order of `info`.
void PointReader::pick_columns(const RowGroupInfo& info) {
  columns_.clear();
  group_columns_ = info.series.size();
  auto column = group_->columns.begin();
  for (std::size_t position = 0; position < group_columns_ && column != group_->columns.end(); ++position) {
    if (column->key() != info.series[position].key) continue;
    if (key_wanted_[column->key()]) columns_.push_back({&*column, position});
    ++column;
  }
}

}  // namespace ranklog::sql
