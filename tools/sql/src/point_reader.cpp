#include "ranklog/sql/point_reader.hpp"

#include <utility>

namespace ranklog::sql {

PointReader::PointReader(Catalog& catalog, PointSelection selection)
    : catalog_(catalog), selection_(std::move(selection)) {}

bool PointReader::next(Point& point) {
  while (next_column_ >= columns_.size()) {
    if (!next_row() && !next_group() && !next_file()) return false;
  }
  const Column& column = *columns_[next_column_++];
  point.source = source_;
  point.ordinal = open_->values_before[next_group_ - 1] + row_ * group_->columns.size() +
                  static_cast<std::uint64_t>(&column - group_->columns.data());
  point.sequence = group_->sequence[row_];
  point.step = group_->step[row_];
  point.time_ns = group_->time_ns[row_];
  point.key = &open_->keys[column.key()];
  point.value = column.at(row_);
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
    if (!wanted(open_->file.row_groups()[index])) continue;
    group_ = catalog_.load(open_, index);
    if (group_ == nullptr) continue;
    columns_.clear();
    for (const Column& column : group_->columns) {
      if (key_wanted_[column.key()]) columns_.push_back(&column);
    }
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
    if (!selection_.superseded && source_->superseded(step)) continue;
    next_column_ = 0;
    return true;
  }
  return false;
}

bool PointReader::wanted(const RowGroupInfo& info) const {
  if (!selection_.steps.overlaps(info.min_step, info.max_step)) return false;
  if (!selection_.superseded && source_->superseded(info.min_step)) return false;
  if (selection_.chunk && !selection_.chunk(info)) return false;
  for (const SeriesStats& series : info.series) {
    if (key_wanted_[series.key]) return true;
  }
  return false;
}

}  // namespace ranklog::sql
