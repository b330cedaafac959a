#include "ranklog/schema/row_group.hpp"

#include <algorithm>
#include <cmath>

namespace ranklog {
namespace {

SeriesStats describe_column(const Column& column) {
  SeriesStats stats;
  stats.key = column.key();
  stats.count = column.size();
  for (std::size_t row = 0; row < column.size(); ++row) {
    const ValueView value = column.at(row);
    if (!value.is_number()) continue;
    const double number = value.as_double();
    if (std::isnan(number)) {
      ++stats.nan_count;
      continue;
    }
    stats.min = stats.numbers == 0 ? number : std::min(stats.min, number);
    stats.max = stats.numbers == 0 ? number : std::max(stats.max, number);
    ++stats.numbers;
  }
  if (column.size() != 0) {
    const ValueView last = column.at(column.size() - 1);
    stats.last_kind = last.kind();
    if (last.is_number()) stats.last = last.as_double();
    if (last.kind() == ValueKind::kBool) stats.last = last.as_bool() ? 1 : 0;
  }
  return stats;
}

}  // namespace

RowGroupInfo describe(const RowGroup& group) {
  RowGroupInfo info;
  info.stream = group.stream;
  info.rows = group.rows();
  if (info.rows != 0) {
    const auto [first, last] = std::ranges::minmax(group.sequence);
    info.first_sequence = first;
    info.last_sequence = last;
    const auto [min_step, max_step] = std::ranges::minmax(group.step);
    info.min_step = min_step;
    info.max_step = max_step;
    const auto [min_time, max_time] = std::ranges::minmax(group.time_ns);
    info.min_time_ns = min_time;
    info.max_time_ns = max_time;
  }
  info.series.reserve(group.columns.size());
  for (const Column& column : group.columns) info.series.push_back(describe_column(column));
  return info;
}

}  // namespace ranklog
