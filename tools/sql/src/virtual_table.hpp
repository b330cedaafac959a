#pragma once
// SQLite's virtual-table interface over the tables of table.hpp.

#include <sqlite3.h>

#include <memory>

#include "table.hpp"

namespace ranklog::sql {

// Makes `kind` known to `db` as an eponymous-only virtual table. Returns SQLite's result code.
[[nodiscard]] int register_table(sqlite3* db, const TableKind& kind, std::shared_ptr<Catalog> catalog,
                                 const ModuleOptions& options);

}  // namespace ranklog::sql
