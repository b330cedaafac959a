#pragma once
// A SQLite connection and its statements, with errors as exceptions.

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ranklog::sync {

class Connection {
 public:
  // `flags`: of sqlite3_open_v2. Throws Error (kIo, or kDamaged for what is no database).
  Connection(const std::filesystem::path& path, int flags);

  void execute(const char* sql);
  [[nodiscard]] sqlite3* get() const noexcept { return handle_.get(); }
  // Turns what went wrong last into an Error that names the file.
  [[noreturn]] void fail(int code) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const noexcept { sqlite3_close(handle); }
  };
  std::filesystem::path path_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// Prepared, bound from left to right, stepped. Must not outlive its connection.
class Statement {
 public:
  Statement(const Connection& connection, const char* sql);

  Statement& bind(std::string_view text);
  Statement& bind(std::int64_t number);
  [[nodiscard]] bool step();  // true: there is a row
  void run();                 // for statements without rows
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::int64_t number(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  const Connection& connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_parameter_ = 1;
};

// Rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(Connection& connection) : connection_(connection) {
    connection.execute("BEGIN IMMEDIATE");
  }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Connection& connection_;
  bool open_ = true;
};

}  // namespace ranklog::sync
