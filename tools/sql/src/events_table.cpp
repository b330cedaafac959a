#include "record_table.hpp"

namespace ranklog::sql {
namespace {

enum Index : int { kStep = kPlaceColumns, kTime, kKind, kData, kAllAttempts };

std::vector<ColumnSpec> columns() {
  return with_place({
      {"step", "INTEGER", "NULL if it belongs to none"},
      {"time", "REAL", "Unix seconds by the clock of the rank's host"},
      {"kind", "TEXT", "barrier, checkpoint, drop ..."},
      {"data", "TEXT", "details, a JSON object"},
      all_attempts_column(),
  });
}

Records<Event> read(Catalog& catalog, const SourceFile& source, bool all_attempts) {
  const auto open = catalog.open(source);
  if (open == nullptr) return {};
  return hide_if(open->file.events(), [&](const Event& event) {
    return !all_attempts && event.step && open->superseded.covers(event.sequence, *event.step);
  });
}

void column(sqlite3_context* out, int column, const SourceFile& /*source*/, const Event& event) {
  switch (column) {
    case kStep:
      return result_optional(out, event.step);
    case kTime:
      return sqlite3_result_double(out, seconds(event.time_ns));
    case kKind:
      return result_text(out, event.kind);
    default:
      return result_text(out, event.json);
  }
}

}  // namespace

std::unique_ptr<Table> make_events(Catalog& catalog, const ModuleOptions& options) {
  return std::make_unique<RecordTable<Event>>(columns(), RecordReader<Event>{read, column, kAllAttempts},
                                              catalog, options);
}

}  // namespace ranklog::sql
