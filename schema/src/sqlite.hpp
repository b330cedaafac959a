#pragma once
// SQLite handles that close themselves, and its results as values or exceptions.

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ranklog/schema/error.hpp"

namespace ranklog {

// What SQLite refused. code() is kBusy, kNotOurs (not a database), kDamaged or kIo.
class SqliteError : public Error {
 public:
  SqliteError(ErrorCode code, const std::string& message, int result)
      : Error(code, message), result_(result) {}
  [[nodiscard]] int result() const noexcept { return result_ & 0xFF; }  // the primary result code
  [[nodiscard]] int extended_result() const noexcept { return result_; }

 private:
  int result_;
};

class Statement {
 public:
  Statement() = default;

  // Parameters count from 1. Texts and blobs must live until the next reset().
  void bind(int index, std::int64_t value);
  void bind(int index, double value);
  void bind(int index, std::string_view text);
  void bind(int index, std::nullptr_t);
  void bind(int index, const std::optional<std::int64_t>& value);
  void bind_blob(int index, std::string_view bytes);

  // True: a row is there. False: done.
  [[nodiscard]] bool step();
  // For statements that give no rows: binds the values to parameters 1, 2 ..., runs, and resets.
  template <class... Values>
  void run(const Values&... values) {
    int index = 0;
    (bind(++index, values), ...);
    finish_run();
  }
  void reset() noexcept;

  // Columns count from 0. Texts and blobs live until the next step() or reset().
  [[nodiscard]] int type(int column) const;  // SQLITE_INTEGER ...; ask before anything else
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] std::string_view blob(int column) const;
  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::optional<std::int64_t> optional_integer(int column) const;

 private:
  friend class Connection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  Statement(sqlite3_stmt* statement, const std::string& file) : file_(file), statement_(statement) {}
  void check(int result);
  void finish_run();

  std::string file_;  // for messages
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Declare it before its statements, so that they go first.
class Connection {
 public:
  Connection() = default;
  // `flags` and `vfs` as for sqlite3_open_v2; the wait for another connection's lock is bounded by
  // `busy_timeout_ms`.
  Connection(const std::filesystem::path& file, int flags, int busy_timeout_ms, const char* vfs = nullptr);

  [[nodiscard]] bool is_open() const noexcept { return connection_ != nullptr; }
  void execute(const char* sql);
  [[nodiscard]] Statement prepare(std::string_view sql);
  [[nodiscard]] std::int64_t query_integer(std::string_view sql);
  [[nodiscard]] std::string query_text(std::string_view sql);
  [[nodiscard]] sqlite3* get() const noexcept { return connection_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* connection) const noexcept { sqlite3_close_v2(connection); }
  };
  std::string file_;
  std::unique_ptr<sqlite3, Close> connection_;
};

// Rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(Connection& connection, const char* begin = "BEGIN IMMEDIATE");
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Connection& connection_;
  bool open_ = true;
};

}  // namespace ranklog
