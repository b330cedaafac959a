#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "record_table.hpp"

namespace ranklog::sql {
namespace {

enum Index : int { kKey = kPlaceColumns, kValue, kJson, kAllAttempts };

std::vector<ColumnSpec> columns() {
  return with_place({
      {"key", "TEXT", "top-level name", Pushdown::kText},
      {"value", "", "number or text; booleans as 0 and 1; lists and objects as JSON"},
      {"json", "TEXT", "the value as JSON text", Pushdown::kNone, true},
      all_attempts_column(),
  });
}

// A key that a later attempt of the same rank has set again is shown as that one has it.
Records<ConfigEntry> read(Catalog& catalog, const SourceFile& source, bool all_attempts) {
  const auto open = catalog.open(source);
  if (open == nullptr) return {};
  std::set<std::string> replaced;
  for (const SourceFile& other : catalog.files()) {
    const bool later = !all_attempts && other.experiment == source.experiment && other.index > source.index &&
                       other.identity().rank == source.identity().rank;
    if (!later) continue;
    const auto later_open = catalog.open(other);
    if (later_open == nullptr) continue;
    for (const ConfigEntry& entry : later_open->file.config()) replaced.insert(entry.key);
  }
  return hide_if(open->file.config(),
                 [&](const ConfigEntry& entry) { return replaced.count(entry.key) > 0; });
}

void result_json(sqlite3_context* out, const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_null()) return sqlite3_result_null(out);
  if (json.is_boolean()) return sqlite3_result_int(out, json.get<bool>() ? 1 : 0);
  if (json.is_number_float()) return sqlite3_result_double(out, json.get<double>());
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX) {
    return sqlite3_result_double(out, json.get<double>());
  }
  if (json.is_number()) return sqlite3_result_int64(out, json.get<std::int64_t>());
  if (json.is_string()) return result_text(out, json.get_ref<const std::string&>());
  result_text(out, text);
}

void column(sqlite3_context* out, int column, const SourceFile& /*source*/, const ConfigEntry& entry) {
  switch (column) {
    case kKey:
      return result_text(out, entry.key);
    case kValue:
      return result_json(out, entry.json);
    default:
      return result_text(out, entry.json);
  }
}

}  // namespace

std::unique_ptr<Table> make_config(Catalog& catalog, const ModuleOptions& options) {
  return std::make_unique<RecordTable<ConfigEntry>>(
      columns(), RecordReader<ConfigEntry>{read, column, kAllAttempts}, catalog, options);
}

}  // namespace ranklog::sql
