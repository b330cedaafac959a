#include "virtual_table.hpp"

#include <algorithm>
#include <charconv>
#include <new>
#include <string>
#include <string_view>

namespace ranklog::sql {
namespace {

// What a module is registered with; owned by SQLite.
struct Module {
  TableKind kind;
  std::shared_ptr<Catalog> catalog;
  ModuleOptions options;
};

struct VirtualTable : sqlite3_vtab {
  VirtualTable(std::unique_ptr<Table> shown, std::shared_ptr<Catalog> of)
      : sqlite3_vtab{}, table(std::move(shown)), catalog(std::move(of)) {}
  std::unique_ptr<Table> table;
  std::shared_ptr<Catalog> catalog;
};

struct Cursor : sqlite3_vtab_cursor {
  Cursor() : sqlite3_vtab_cursor{} {}
  std::unique_ptr<Rows> rows;
  bool at_end = true;
};

VirtualTable& of(sqlite3_vtab* table) {
  return *static_cast<VirtualTable*>(table);
}
Cursor& of(sqlite3_vtab_cursor* cursor) {
  return *static_cast<Cursor*>(cursor);
}

// No exception may cross SQLite: it becomes SQLite's error message, and is kept for who runs the statement.
template <class Action>
int guarded(Catalog& catalog, char** message, Action action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (const std::exception& error) {
    catalog.note_failure(std::current_exception());
    sqlite3_free(*message);
    *message = sqlite3_mprintf("%s", error.what());
    return SQLITE_ERROR;
  }
}

std::string sql_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::string declaration(const Table& table) {
  std::string sql;
  for (const ColumnSpec& column : table.columns()) {
    sql += sql.empty() ? "CREATE TABLE t(" : ", ";
    sql += sql_name(column.name) + ' ' + column.type + (column.hidden ? " HIDDEN" : "");
  }
  return sql + ')';
}

int connect(sqlite3* db, void* data, int /*argc*/, const char* const* /*argv*/, sqlite3_vtab** out,
            char** message) {
  auto& module = *static_cast<Module*>(data);
  return guarded(*module.catalog, message, [&] {
    auto table =
        std::make_unique<VirtualTable>(module.kind.make(*module.catalog, module.options), module.catalog);
    const int code = sqlite3_declare_vtab(db, declaration(*table->table).c_str());
    if (code != SQLITE_OK) return code;
    (void)sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    *out = table.release();
    return SQLITE_OK;
  });
}

int disconnect(sqlite3_vtab* table) {
  delete &of(table);
  return SQLITE_OK;
}

// Two constraints are the same plan only if SQLite and we compare texts alike.
bool compares_bytes(sqlite3_index_info* info, int constraint) {
  return std::string_view(sqlite3_vtab_collation(info, constraint)) == "BINARY";
}

// The plan is a text: "column:operation;" for each argument of filter().
int best_index(sqlite3_vtab* base, sqlite3_index_info* info) {
  return guarded(*of(base).catalog, &base->zErrMsg, [&] {
    const Table& table = *of(base).table;
    std::string plan;
    double rows = table.expected_rows();
    int arguments = 0;
    for (int i = 0; i < info->nConstraint; ++i) {
      const auto& constraint = info->aConstraint[i];
      if (constraint.iColumn < 0) continue;
      const ColumnSpec& column = table.columns()[static_cast<std::size_t>(constraint.iColumn)];
      if (!can_push(column.pushdown, constraint.op)) continue;
      const bool parameter = column.pushdown == Pushdown::kParameter;
      if (constraint.usable == 0) {
        // A parameter must be known before the scan begins; another plan has it.
        if (parameter) return SQLITE_CONSTRAINT;
        continue;
      }
      if (column.pushdown == Pushdown::kText && !compares_bytes(info, i)) continue;
      info->aConstraintUsage[i].argvIndex = ++arguments;
      if (!parameter) rows /= constraint.op == SQLITE_INDEX_CONSTRAINT_EQ ? 20 : 3;
      plan += std::to_string(constraint.iColumn) + ':' + std::to_string(constraint.op) + ';';
    }
    info->estimatedRows = static_cast<sqlite3_int64>(std::max(1.0, rows));
    // A scan costs something even where it finds nothing: files are opened.
    info->estimatedCost = rows + 100;
    info->idxStr = sqlite3_mprintf("%s", plan.c_str());
    info->needToFreeIdxStr = 1;
    return info->idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
  });
}

int take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

int open_cursor(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
  return guarded(*of(table).catalog, &table->zErrMsg, [&] {
    *out = std::make_unique<Cursor>().release();
    return SQLITE_OK;
  });
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete &of(cursor);
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* base) {
  return guarded(*of(base->pVtab).catalog, &base->pVtab->zErrMsg, [&] {
    Cursor& cursor = of(base);
    cursor.at_end = !cursor.rows->next();
    return SQLITE_OK;
  });
}

int filter(sqlite3_vtab_cursor* base, int /*number*/, const char* plan, int count, sqlite3_value** values) {
  const int code = guarded(*of(base->pVtab).catalog, &base->pVtab->zErrMsg, [&] {
    const Table& table = *of(base->pVtab).table;
    Filter wanted;
    std::string_view rest(plan);
    for (int i = 0; i < count; ++i) {
      const int column = take_number(rest);
      const int operation = take_number(rest);
      wanted.add(column, table.columns()[static_cast<std::size_t>(column)].pushdown, operation, values[i]);
    }
    of(base).rows = table.scan(wanted);
    return SQLITE_OK;
  });
  return code == SQLITE_OK ? next(base) : code;
}

int at_end(sqlite3_vtab_cursor* cursor) {
  return of(cursor).at_end ? 1 : 0;
}

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* out, int index) {
  return guarded(*of(cursor->pVtab).catalog, &cursor->pVtab->zErrMsg, [&] {
    of(cursor).rows->column(out, index);
    return SQLITE_OK;
  });
}

int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  *out = of(cursor).rows->row_id();
  return SQLITE_OK;
}

// No xCreate: the table exists without CREATE VIRTUAL TABLE, and cannot be made by it. No xUpdate: read-only.
const sqlite3_module& callbacks() {
  static const sqlite3_module module = [] {
    sqlite3_module made{};
    made.xConnect = connect;
    made.xDisconnect = disconnect;
    made.xBestIndex = best_index;
    made.xOpen = open_cursor;
    made.xClose = close_cursor;
    made.xFilter = filter;
    made.xNext = next;
    made.xEof = at_end;
    made.xColumn = column;
    made.xRowid = row_id;
    return made;
  }();
  return module;
}

}  // namespace

int register_table(sqlite3* db, const TableKind& kind, std::shared_ptr<Catalog> catalog,
                   const ModuleOptions& options) {
  auto* module = std::make_unique<Module>(Module{kind, std::move(catalog), options}).release();
  // SQLite calls the destructor also when it refuses.
  return sqlite3_create_module_v2(db, kind.name, &callbacks(), module,
                                  [](void* data) { delete static_cast<Module*>(data); });
}

}  // namespace ranklog::sql
