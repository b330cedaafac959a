#include "sqlite.hpp"

#include <cerrno>

#include "ranklog/schema/disk_space.hpp"

namespace ranklog {
namespace {

ErrorCode code_of(int result) {
  switch (result & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorCode::kBusy;
    case SQLITE_NOTADB:
      return ErrorCode::kNotOurs;
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:     // in our own SQL: a table or column that should be there is not
    case SQLITE_MISMATCH:  // a value of a type that its column cannot have
      return ErrorCode::kDamaged;
    default:
      return ErrorCode::kIo;
  }
}

int last_errno(sqlite3_file* file) {
  int error = 0;
  if (file == nullptr || file->pMethods == nullptr) return 0;
  file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error);
  return error;
}

// sqlite3_system_errno() is the errno of now: what the failed call left, or what SQLite did afterwards. Each
// file keeps its own.
int system_error_of(sqlite3* connection) {
  for (const int which : {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER}) {
    sqlite3_file* file = nullptr;
    if (sqlite3_file_control(connection, "main", which, &file) != SQLITE_OK) continue;
    if (const int error = last_errno(file); error != 0) return error;
  }
  return sqlite3_system_errno(connection);
}

[[noreturn]] void throw_sqlite(sqlite3* connection, int result, const std::string& file) {
  if (result == SQLITE_NOMEM) throw std::bad_alloc();
  std::string reason = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(result);
  const int system_error = connection != nullptr ? system_error_of(connection) : 0;
  const int primary = result & 0xFF;
  if (system_error != 0 &&
      (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN || primary == SQLITE_FULL)) {
    reason += " (" + disk_error_text(system_error, file) + ")";
  } else if (primary == SQLITE_FULL) {
    reason += " (" + disk_error_text(ENOSPC, file) + ")";  // not every write leaves its errno behind
  }
  throw SqliteError(code_of(result), "'" + file + "': SQLite says: " + reason, result);
}

}  // namespace

void Statement::check(int result) {
  if (result != SQLITE_OK) throw_sqlite(sqlite3_db_handle(statement_.get()), result, file_);
}

void Statement::bind(int index, std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), index, value));
}
void Statement::bind(int index, double value) {
  check(sqlite3_bind_double(statement_.get(), index, value));
}
void Statement::bind(int index, std::string_view text) {
  // A null pointer would bind NULL instead of the empty text.
  check(sqlite3_bind_text64(statement_.get(), index, text.data() != nullptr ? text.data() : "", text.size(),
                            SQLITE_STATIC, SQLITE_UTF8));
}
void Statement::bind(int index, std::nullptr_t) {
  check(sqlite3_bind_null(statement_.get(), index));
}
void Statement::bind(int index, const std::optional<std::int64_t>& value) {
  value ? bind(index, *value) : bind(index, nullptr);
}
void Statement::bind_blob(int index, std::string_view bytes) {
  check(sqlite3_bind_blob64(statement_.get(), index, bytes.data() != nullptr ? bytes.data() : "",
                            bytes.size(), SQLITE_STATIC));
}

bool Statement::step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  throw_sqlite(sqlite3_db_handle(statement_.get()), result, file_);
}

void Statement::finish_run() {
  struct ResetAtEnd {
    Statement& statement;
    ~ResetAtEnd() { statement.reset(); }
  } reset_at_end{*this};
  while (step()) {
  }
}

void Statement::reset() noexcept {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

int Statement::type(int column) const {
  return sqlite3_column_type(statement_.get(), column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view Statement::blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::optional<std::int64_t> Statement::optional_integer(int column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}

Connection::Connection(const std::filesystem::path& file, int flags, int busy_timeout_ms, const char* vfs)
    : file_(file.string()) {
  sqlite3* raw = nullptr;
  const int result = sqlite3_open_v2(file.c_str(), &raw, flags, vfs);
  connection_.reset(raw);  // SQLite hands one back even when it fails
  if (result != SQLITE_OK) throw_sqlite(raw, result, file_);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, busy_timeout_ms);
}

void Connection::execute(const char* sql) {
  const int result = sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) throw_sqlite(connection_.get(), result, file_);
}

Statement Connection::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int result =
      sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  Statement statement(raw, file_);
  if (result != SQLITE_OK) throw_sqlite(connection_.get(), result, file_);
  return statement;
}

std::int64_t Connection::query_integer(std::string_view sql) {
  Statement statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Connection::query_text(std::string_view sql) {
  Statement statement = prepare(sql);
  return statement.step() ? std::string(statement.text(0)) : std::string();
}

Transaction::Transaction(Connection& connection, const char* begin) : connection_(connection) {
  connection_.execute(begin);
}

Transaction::~Transaction() {
  // SQLite has rolled back by itself after some errors; a second time does no harm.
  if (open_) sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  connection_.execute("COMMIT");
  open_ = false;
}

}  // namespace ranklog
