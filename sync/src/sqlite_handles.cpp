#include "sqlite_handles.hpp"

#include "ranklog/schema/error.hpp"

namespace ranklog::sync {

Connection::Connection(const std::filesystem::path& path, int flags) : path_(path) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);  // SQLite hands one back even when it fails
  if (code != SQLITE_OK) fail(code);
  constexpr int kBusyWaitMs = 5'000;
  sqlite3_busy_timeout(handle, kBusyWaitMs);
}

void Connection::execute(const char* sql) {
  const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

void Connection::fail(int code) const {
  const std::string why = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  const bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  throw Error(damaged ? ErrorCode::kDamaged : ErrorCode::kIo, path_.string() + ": " + why);
}

Statement::Statement(const Connection& connection, const char* sql) : connection_(connection) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(connection.get(), sql, -1, &statement, nullptr);
  statement_.reset(statement);
  if (code != SQLITE_OK) connection_.fail(code);
}

Statement& Statement::bind(std::string_view text) {
  const int code = sqlite3_bind_text(statement_.get(), next_parameter_++, text.data(),
                                     static_cast<int>(text.size()), SQLITE_TRANSIENT);
  if (code != SQLITE_OK) connection_.fail(code);
  return *this;
}

Statement& Statement::bind(std::int64_t number) {
  const int code = sqlite3_bind_int64(statement_.get(), next_parameter_++, number);
  if (code != SQLITE_OK) connection_.fail(code);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) connection_.fail(code);
  return false;
}

void Statement::run() {
  (void)step();
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

std::int64_t Statement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

Transaction::~Transaction() {
  if (open_) sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  connection_.execute("COMMIT");
  open_ = false;
}

}  // namespace ranklog::sync
