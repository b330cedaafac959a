#include "columns.hpp"
#include "ranklog/sql/point_reader.hpp"
#include "table.hpp"

namespace ranklog::sql {
namespace {

enum Index : int {
  kStep = kPlaceColumns,
  kTime,
  kKey,
  kValue,
  kKind,
  kText,
  kTimeNs,
  kSequence,
  kSuperseded,
  kAllAttempts,
};

std::vector<ColumnSpec> point_columns() {
  return with_place({
      {"step", "INTEGER", "step that the value was logged at", Pushdown::kInteger},
      {"time", "REAL", "when, in Unix seconds by the clock of the rank's host", Pushdown::kSeconds},
      {"key", "TEXT", "what was logged: names joined by dots (a dot inside a name is \\.)", Pushdown::kText},
      {"value", "", "REAL, INTEGER or TEXT as logged; NULL for NaN and null (see kind)"},
      {"kind", "TEXT", "float64, nan, int64, bool, string, json or null"},
      {"text", "TEXT", "the value as exact text: NaN, Infinity, 0.25, any string", Pushdown::kNone, true},
      {"time_ns", "INTEGER", "time in Unix nanoseconds, exact", Pushdown::kNone, true},
      {"sequence", "INTEGER", "number of the log() call in its file", Pushdown::kNone, true},
      {"superseded", "INTEGER", "1 if a later attempt or a rewind replaced it", Pushdown::kNone, true},
      all_attempts_column(),
  });
}

std::string_view kind_name(ValueView value) {
  switch (value.kind()) {
    case ValueKind::kNull:
      return "null";
    case ValueKind::kFloat64:
      return value.as_double() == value.as_double() ? "float64" : "nan";
    case ValueKind::kInt64:
      return "int64";
    case ValueKind::kBool:
      return "bool";
    case ValueKind::kString:
      return "string";
    case ValueKind::kJson:
      return "json";
  }
  return "null";
}

class PointRows : public Rows {
 public:
  PointRows(Catalog& catalog, PointSelection selection, bool all_attempts)
      : reader_(catalog, std::move(selection)), all_attempts_(all_attempts) {}

  bool next() override { return reader_.next(point_); }

  std::int64_t row_id() const override { return row_id_of(*point_.source, point_.ordinal); }

  void column(sqlite3_context* out, int index) override {
    switch (index) {
      case kStep:
        return sqlite3_result_int64(out, point_.step);
      case kTime:
        return sqlite3_result_double(out, seconds(point_.time_ns));
      case kKey:
        return result_text(out, *point_.key);
      case kValue:
        return result_value(out, point_.value);
      case kKind:
        return result_text(out, kind_name(point_.value));
      case kText:
        return text(out);
      case kTimeNs:
        return sqlite3_result_int64(out, point_.time_ns);
      case kSequence:
        return sqlite3_result_int64(out, static_cast<std::int64_t>(point_.sequence));
      case kSuperseded:
        return sqlite3_result_int(out, point_.superseded ? 1 : 0);
      case kAllAttempts:
        return sqlite3_result_int(out, all_attempts_ ? 1 : 0);
      default:
        return result_place(out, index, *point_.source);
    }
  }

 private:
  void text(sqlite3_context* out) {
    if (point_.value.has_text()) return result_text(out, point_.value.text());
    json_.clear();
    append_json(json_, point_.value);
    result_text(out, json_);
  }

  PointReader reader_;
  bool all_attempts_;
  Point point_;
  std::string json_;
};

class PointsTable : public Table {
 public:
  PointsTable(Catalog& catalog, const ModuleOptions& options)
      : Table(point_columns()), catalog_(catalog), options_(options) {}

  double expected_rows() const override {
    double rows = 1;
    for (const SourceFile& source : catalog_.files()) rows += static_cast<double>(source.segment->info.rows);
    return rows * 10;
  }

  std::unique_ptr<Rows> scan(const Filter& filter) const override {
    PointSelection selection;
    selection.superseded = filter.parameter(kAllAttempts, options_.all_attempts);
    selection.file = [filter](const SourceFile& source) {
      return !filter.impossible() && in_place(filter, source);
    };
    selection.key = [filter](std::string_view key) { return filter.accepts(kKey, key); };
    selection.chunk = [filter](const RowGroupInfo& info) {
      return filter.overlaps(kTime, seconds(info.min_time_ns), seconds(info.max_time_ns));
    };
    selection.steps = filter.range(kStep);
    const bool all_attempts = selection.superseded;
    return std::make_unique<PointRows>(catalog_, std::move(selection), all_attempts);
  }

 private:
  Catalog& catalog_;
  ModuleOptions options_;
};

}  // namespace

std::unique_ptr<Table> make_points(Catalog& catalog, const ModuleOptions& options) {
  return std::make_unique<PointsTable>(catalog, options);
}

}  // namespace ranklog::sql
