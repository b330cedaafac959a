#include "columns.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace ranklog::sql {

std::vector<ColumnSpec> place_columns() {
  return {
      {"project", "TEXT", "project", Pushdown::kText},
      {"experiment", "TEXT", "id of the experiment", Pushdown::kText},
      {"attempt", "INTEGER", "launch of the experiment, counted from 0", Pushdown::kInteger},
      {"rank", "INTEGER", "global rank of the process", Pushdown::kInteger},
      {"local_rank", "INTEGER", "its rank on its node", Pushdown::kInteger},
      {"node", "INTEGER", "its node", Pushdown::kInteger},
  };
}

std::vector<ColumnSpec> with_place(std::vector<ColumnSpec> own) {
  std::vector<ColumnSpec> columns = place_columns();
  std::move(own.begin(), own.end(), std::back_inserter(columns));
  return columns;
}

ColumnSpec all_attempts_column() {
  return {"all_attempts", "INTEGER", "WHERE all_attempts = 1 shows what later attempts replaced, too",
          Pushdown::kParameter, true};
}

bool in_place(const Filter& filter, const SourceFile& source) {
  const Identity& identity = source.identity();
  return filter.accepts(kProject, std::string_view(source.experiment->project)) &&
         filter.accepts(kExperiment, std::string_view(source.experiment->id)) &&
         filter.accepts(kAttempt, std::int64_t{source.attempt->number}) &&
         filter.accepts(kRank, std::int64_t{identity.rank}) &&
         filter.accepts(kLocalRank, std::int64_t{identity.local_rank}) &&
         filter.accepts(kNode, std::int64_t{identity.node});
}

void result_place(sqlite3_context* out, int column, const SourceFile& source) {
  switch (column) {
    case kProject:
      return result_text(out, source.experiment->project);
    case kExperiment:
      return result_text(out, source.experiment->id);
    case kAttempt:
      return sqlite3_result_int(out, source.attempt->number);
    case kRank:
      return sqlite3_result_int(out, source.identity().rank);
    case kLocalRank:
      return sqlite3_result_int(out, source.identity().local_rank);
    default:
      return sqlite3_result_int(out, source.identity().node);
  }
}

void result_text(sqlite3_context* out, std::string_view text) {
  // A null pointer would be NULL, not the empty text.
  sqlite3_result_text64(out, text.data() == nullptr ? "" : text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
}

void result_optional(sqlite3_context* out, std::optional<std::int64_t> value) {
  if (value) {
    sqlite3_result_int64(out, *value);
  } else {
    sqlite3_result_null(out);
  }
}

void result_value(sqlite3_context* out, ValueView value) {
  switch (value.kind()) {
    case ValueKind::kNull:
      return sqlite3_result_null(out);
    case ValueKind::kFloat64:
      return sqlite3_result_double(out, value.as_double());
    case ValueKind::kInt64:
      return sqlite3_result_int64(out, value.as_int64());
    case ValueKind::kBool:
      return sqlite3_result_int(out, value.as_bool() ? 1 : 0);
    case ValueKind::kString:
    case ValueKind::kJson:
      return result_text(out, value.text());
  }
}

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

void result_list(sqlite3_context* out, const std::vector<std::string>& texts) {
  std::string json = "[";
  for (const std::string& text : texts) {
    if (json.size() > 1) json += ',';
    append_json_string(json, text);
  }
  result_text(out, json + ']');
}

}  // namespace ranklog::sql
