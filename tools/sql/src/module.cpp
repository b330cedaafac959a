#include "ranklog/sql/module.hpp"

#include <sqlite3.h>

#include "virtual_table.hpp"

namespace ranklog::sql {

const std::vector<TableKind>& table_kinds() {
  static const std::vector<TableKind> kinds{
      {"points", "every logged value: one row a value", make_points},
      {"history", "one row a step, one column a key; attempts joined as a chart has them", make_history},
      {"series", "one row a rank file and key: counts, range and last value, without reading points",
       make_series},
      {"runs", "one row a rank file: who wrote it, where, and what became of it", make_runs},
      {"config", "configuration: one row a rank and key", make_config},
      {"events", "barriers, checkpoints and other things that happened", make_events},
      {"artifacts", "checkpoints and other files that were logged: one row a version", make_artifacts},
  };
  return kinds;
}

void register_tables(sqlite3* db, std::shared_ptr<Catalog> catalog, const ModuleOptions& options) {
  for (const TableKind& kind : table_kinds()) {
    if (register_table(db, kind, catalog, options) != SQLITE_OK) {
      throw Error(ErrorCode::kIo, std::string("cannot make the table ") + kind.name +
                                      " known to SQLite: " + sqlite3_errmsg(db));
    }
  }
}

std::vector<TableHelp> describe_tables() {
  Catalog nothing({});
  std::vector<TableHelp> tables;
  for (const TableKind& kind : table_kinds()) {
    TableHelp help{kind.name, kind.help, {}};
    const auto table = kind.make(nothing, {});
    for (const ColumnSpec& column : table->columns()) {
      help.columns.push_back({column.name, column.type, column.hidden, column.help});
    }
    tables.push_back(std::move(help));
  }
  return tables;
}

}  // namespace ranklog::sql
