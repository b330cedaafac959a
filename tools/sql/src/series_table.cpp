#include <algorithm>

#include "record_table.hpp"

namespace ranklog::sql {
namespace {

enum Index : int {
  kKey = kPlaceColumns,
  kCount,
  kNumbers,
  kNanCount,
  kMin,
  kMax,
  kLast,
  kFirstStep,
  kLastStep,
  kAllAttempts,
};

std::vector<ColumnSpec> columns() {
  return with_place({
      {"key", "TEXT", "what was logged", Pushdown::kText},
      {"count", "INTEGER", "values of any kind"},
      {"numbers", "INTEGER", "numbers that are not NaN: min and max are over these"},
      {"nan_count", "INTEGER", "values that are NaN"},
      {"min", "REAL", "least number; NULL if there is none"},
      {"max", "REAL", "greatest number; NULL if there is none"},
      {"last", "REAL", "value logged last; NULL for NaN and for what is no number"},
      {"first_step", "INTEGER", "least step"},
      {"last_step", "INTEGER", "greatest step"},
      all_attempts_column(),
  });
}

struct Series {
  std::string key;
  SeriesStats stats;  // of all row groups together
  std::int64_t first_step = 0, last_step = 0;
  std::uint64_t last_sequence = 0;
};

void merge(Series& series, const SeriesStats& stats, const RowGroupInfo& info) {
  SeriesStats& total = series.stats;
  series.first_step = total.count == 0 ? info.min_step : std::min(series.first_step, info.min_step);
  series.last_step = total.count == 0 ? info.max_step : std::max(series.last_step, info.max_step);
  if (stats.numbers > 0) {
    total.min = total.numbers == 0 ? stats.min : std::min(total.min, stats.min);
    total.max = total.numbers == 0 ? stats.max : std::max(total.max, stats.max);
  }
  total.count += stats.count;
  total.numbers += stats.numbers;
  total.nan_count += stats.nan_count;
  if (info.last_sequence >= series.last_sequence) {
    series.last_sequence = info.last_sequence;
    total.last = stats.last;
    total.last_kind = stats.last_kind;
  }
}

// The rows of the group that nothing later replaced.
RowGroup surviving(const RowGroup& group, const Supersession& superseded) {
  RowGroup kept;
  for (const Column& column : group.columns) kept.columns.emplace_back(column.key());
  for (std::size_t row = 0; row < group.rows(); ++row) {
    if (superseded.covers(group.sequence[row], group.step[row])) continue;
    kept.sequence.push_back(group.sequence[row]);
    kept.step.push_back(group.step[row]);
    kept.time_ns.push_back(group.time_ns[row]);
    for (std::size_t i = 0; i < group.columns.size(); ++i)
      kept.columns[i].push_back(group.columns[i].at(row));
  }
  return kept;
}

// Only a chunk that lies across the point where something later took over has to be decoded.
Records<Series> read(Catalog& catalog, const SourceFile& source, bool all_attempts) {
  const auto open = catalog.open(source);
  if (open == nullptr) return {};
  std::vector<Series> all(open->keys.size());
  for (std::size_t key = 0; key < all.size(); ++key) all[key].key = open->keys[key];
  for (std::size_t i = 0; i < open->file.row_groups().size(); ++i) {
    const RowGroupInfo* info = &open->file.row_groups()[i];
    RowGroupInfo of_survivors;
    if (!all_attempts && open->superseded.may_cover(*info)) {
      if (open->superseded.covers_all(*info)) continue;
      const auto group = catalog.load(open, i);
      if (group == nullptr) continue;
      of_survivors = describe(surviving(*group, open->superseded));
      info = &of_survivors;
    }
    for (const SeriesStats& stats : info->series) merge(all[stats.key], stats, *info);
  }
  return hide_if(std::move(all), [](const Series& series) { return series.stats.count == 0; });
}

void result_if(sqlite3_context* out, bool known, double value) {
  if (known) {
    sqlite3_result_double(out, value);
  } else {
    sqlite3_result_null(out);
  }
}

void column(sqlite3_context* out, int column, const SourceFile& /*source*/, const Series& series) {
  const SeriesStats& stats = series.stats;
  const bool last_is_number = stats.last_kind == ValueKind::kFloat64 ||
                              stats.last_kind == ValueKind::kInt64 || stats.last_kind == ValueKind::kBool;
  switch (column) {
    case kKey:
      return result_text(out, series.key);
    case kCount:
      return sqlite3_result_int64(out, static_cast<std::int64_t>(stats.count));
    case kNumbers:
      return sqlite3_result_int64(out, static_cast<std::int64_t>(stats.numbers));
    case kNanCount:
      return sqlite3_result_int64(out, static_cast<std::int64_t>(stats.nan_count));
    case kMin:
      return result_if(out, stats.numbers > 0, stats.min);
    case kMax:
      return result_if(out, stats.numbers > 0, stats.max);
    case kLast:
      return result_if(out, last_is_number, stats.last);
    case kFirstStep:
      return sqlite3_result_int64(out, series.first_step);
    default:
      return sqlite3_result_int64(out, series.last_step);
  }
}

}  // namespace

std::unique_ptr<Table> make_series(Catalog& catalog, const ModuleOptions& options) {
  return std::make_unique<RecordTable<Series>>(columns(), RecordReader<Series>{read, column, kAllAttempts},
                                               catalog, options);
}

}  // namespace ranklog::sql
