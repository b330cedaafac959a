#pragma once
// One read-only SQL question to the logs.

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ranklog/sql/module.hpp"

namespace ranklog::sql {

// A value of a result: NULL, INTEGER, REAL, TEXT or BLOB.
struct Blob {
  std::string bytes;
  friend auto operator<=>(const Blob&, const Blob&) = default;
};
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string, Blob>;

// An empty database in memory that has nothing but the tables of the logs, and refuses everything but
// reading: no ATTACH, no CREATE, no write, no extension.
class Database {
 public:
  explicit Database(std::shared_ptr<Catalog> catalog, const ModuleOptions& options = {});
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  // Runs one statement; `columns` is told first, then every row. Throws Error (kUsage) with SQLite's message
  // and what was probably meant, for text that is no statement, more than one, or one that would do more than
  // read; what could not be read while it ran is thrown as it was (Error, std::bad_alloc).
  void query(std::string_view statement, const std::function<void(const std::vector<std::string>&)>& columns,
             const std::function<void(const std::vector<SqlValue>&)>& row);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ranklog::sql
