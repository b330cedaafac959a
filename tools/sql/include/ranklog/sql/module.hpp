#pragma once
// The logs as tables of a SQLite connection.

#include <memory>
#include <string>
#include <vector>

#include "ranklog/sql/catalog.hpp"

struct sqlite3;

namespace ranklog::sql {

struct ColumnHelp {
  std::string name;
  std::string type;     // as declared to SQLite
  bool hidden = false;  // selectable by name, not part of *
  std::string help;
};

struct TableHelp {
  std::string name;
  std::string help;
  std::vector<ColumnHelp> columns;
};

struct ModuleOptions {
  // What all_attempts is where a query does not set it.
  bool all_attempts = false;
};

// Makes the tables points, history, series, runs, config, events and artifacts known to `db` (eponymous
// virtual tables: nothing is created, ATTACH is not needed). Constraints on the identity columns, on key and
// step and time are pushed down to files and chunks. The connection keeps the catalog alive; use both from
// one thread. Throws Error (kIo) with SQLite's reason.
void register_tables(sqlite3* db, std::shared_ptr<Catalog> catalog, const ModuleOptions& options = {});

// What there is to ask. The columns of history that stand for keys depend on the files and are not listed.
[[nodiscard]] std::vector<TableHelp> describe_tables();

}  // namespace ranklog::sql
