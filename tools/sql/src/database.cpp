#include "ranklog/sql/database.hpp"

#include <sqlite3.h>

#include <array>
#include <exception>
#include <new>
#include <string_view>

namespace ranklog::sql {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Connection = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// Pragmas that only tell what there is.
bool is_harmless_pragma(const char* name) {
  constexpr std::array kHarmless{"table_info",      "table_xinfo",    "table_list",
                                 "function_list",   "pragma_list",    "module_list",
                                 "compile_options", "collation_list", "database_list"};
  for (const char* harmless : kHarmless) {
    if (name != nullptr && sqlite3_stricmp(name, harmless) == 0) return true;
  }
  return false;
}

int authorize(void* /*data*/, int action, const char* first, const char* second, const char* /*database*/,
              const char* /*trigger*/) {
  switch (action) {
    case SQLITE_UPDATE:
      // SQLite 3.40 asks for it while it declares a virtual table's columns. A statement that writes to its
      // schema is refused in any case.
      return first != nullptr && std::string_view(first) == "sqlite_master" ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return second != nullptr && sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      return is_harmless_pragma(first) ? SQLITE_OK : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

Connection open_in_memory() {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Connection db(raw);
  if (code != SQLITE_OK) {
    throw Error(ErrorCode::kIo,
                std::string("cannot open a SQLite database in memory: ") + sqlite3_errstr(code));
  }
  return db;
}

// Whose fault it is that a statement could not be run to its end.
ErrorCode code_of(int result) {
  switch (result & 0xFF) {
    case SQLITE_ERROR:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_AUTH:
      return ErrorCode::kUsage;
    case SQLITE_CORRUPT:
      return ErrorCode::kDamaged;
    default:
      return ErrorCode::kIo;
  }
}

[[noreturn]] void refuse(sqlite3* db, Catalog& catalog) {
  const std::exception_ptr failure = catalog.take_failure();
  const int code = sqlite3_errcode(db);
  if ((code & 0xFF) == SQLITE_NOMEM) throw std::bad_alloc();
  if (failure != nullptr) std::rethrow_exception(failure);
  const std::string message = sqlite3_errmsg(db);
  if (sqlite3_errcode(db) == SQLITE_AUTH || message.ends_with("may not be modified")) {
    throw Error(ErrorCode::kUsage, "the logs can only be read: this statement would do more",
                "use SELECT (or WITH, EXPLAIN, PRAGMA table_info)");
  }
  throw Error(code_of(code), "SQL: " + message);
}

// True if nothing but blanks, comments and semicolons is left.
bool is_blank(sqlite3* db, std::string_view text) {
  while (!text.empty()) {
    sqlite3_stmt* raw = nullptr;
    const char* tail = nullptr;
    const int code = sqlite3_prepare_v2(db, text.data(), static_cast<int>(text.size()), &raw, &tail);
    const Statement statement(raw);
    if (code != SQLITE_OK || statement != nullptr) return false;
    const auto used = static_cast<std::size_t>(tail - text.data());
    if (used == 0) return true;
    text.remove_prefix(used);
  }
  return true;
}

Statement prepare(sqlite3* db, std::string_view text, Catalog& catalog) {
  if (text.find('\0') != std::string_view::npos || text.size() > 1'000'000) {
    throw Error(ErrorCode::kUsage, "this is no SQL statement (it holds a NUL byte or is over 1 MB)");
  }
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  if (sqlite3_prepare_v2(db, text.data(), static_cast<int>(text.size()), &raw, &tail) != SQLITE_OK)
    refuse(db, catalog);
  Statement statement(raw);
  if (statement == nullptr) throw Error(ErrorCode::kUsage, "the SQL is empty", "see ranklog query --schema");
  if (!is_blank(db, text.substr(static_cast<std::size_t>(tail - text.data())))) {
    throw Error(ErrorCode::kUsage, "only one SQL statement at a time");
  }
  if (sqlite3_stmt_readonly(statement.get()) == 0 || sqlite3_column_count(statement.get()) == 0) {
    throw Error(ErrorCode::kUsage, "the logs can only be read: this statement gives no rows", "use SELECT");
  }
  return statement;
}

SqlValue value_of(sqlite3_stmt* statement, int column) {
  const auto bytes = [&](const void* data) {
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
    return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
  };
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_TEXT:
      return bytes(sqlite3_column_text(statement, column));
    case SQLITE_BLOB:
      return Blob{bytes(sqlite3_column_blob(statement, column))};
    default:
      return std::monostate();
  }
}

}  // namespace

struct Database::Impl {
  std::shared_ptr<Catalog> catalog;
  Connection db;
};

Database::Database(std::shared_ptr<Catalog> catalog, const ModuleOptions& options)
    : impl_(std::make_unique<Impl>(Impl{catalog, open_in_memory()})) {
  register_tables(impl_->db.get(), std::move(catalog), options);
  // Also what SQLite itself would write: sorting spills stay in memory, nothing lands in a temporary folder.
  (void)sqlite3_exec(impl_->db.get(), "PRAGMA temp_store = MEMORY", nullptr, nullptr, nullptr);
  // A mistyped "name" must be an error, not a text that is the same in every row.
  (void)sqlite3_db_config(impl_->db.get(), SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  (void)sqlite3_set_authorizer(impl_->db.get(), authorize, nullptr);
}

Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

void Database::query(std::string_view statement,
                     const std::function<void(const std::vector<std::string>&)>& columns,
                     const std::function<void(const std::vector<SqlValue>&)>& row) {
  sqlite3* db = impl_->db.get();
  (void)impl_->catalog->take_failure();  // an earlier statement's
  const Statement prepared = prepare(db, statement, *impl_->catalog);
  const int count = sqlite3_column_count(prepared.get());
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(sqlite3_column_name(prepared.get(), i));
  columns(names);
  std::vector<SqlValue> values(static_cast<std::size_t>(count));
  int code = 0;
  while ((code = sqlite3_step(prepared.get())) == SQLITE_ROW) {
    for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = value_of(prepared.get(), i);
    row(values);
  }
  if (code != SQLITE_DONE) refuse(db, *impl_->catalog);
}

}  // namespace ranklog::sql
