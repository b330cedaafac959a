#pragma once
// What queries must agree with: the same rows in a plain SQLite table.

#include <sqlite3.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranklog/sql/database.hpp"

namespace ranklog::test {

using SqlRows = std::vector<std::vector<sql::SqlValue>>;

class PlainDatabase {
 public:
  explicit PlainDatabase(const std::string& path = ":memory:") {
    sqlite3* raw = nullptr;
    check(sqlite3_open(path.c_str(), &raw));
    db_.reset(raw);
  }

  void execute(const std::string& sql) {
    check(sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr));
  }

  // Binds a value a question mark.
  SqlRows run(const std::string& sql, const std::vector<sql::SqlValue>& values = {}) {
    sqlite3_stmt* raw = nullptr;
    check(sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr));
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(raw, sqlite3_finalize);
    for (std::size_t i = 0; i < values.size(); ++i) bind(raw, static_cast<int>(i) + 1, values[i]);
    SqlRows rows;
    int code = 0;
    while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
      rows.emplace_back();
      for (int i = 0; i < sqlite3_column_count(raw); ++i) rows.back().push_back(value_of(raw, i));
    }
    if (code != SQLITE_DONE) check(code);
    return rows;
  }

 private:
  void check(int code) {
    if (code != SQLITE_OK) throw std::runtime_error(db_ ? sqlite3_errmsg(db_.get()) : sqlite3_errstr(code));
  }

  static void bind(sqlite3_stmt* statement, int at, const sql::SqlValue& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      sqlite3_bind_int64(statement, at, *integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      sqlite3_bind_double(statement, at, *real);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      sqlite3_bind_text(statement, at, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT);
    } else {
      sqlite3_bind_null(statement, at);
    }
  }

  static sql::SqlValue value_of(sqlite3_stmt* statement, int column) {
    switch (sqlite3_column_type(statement, column)) {
      case SQLITE_INTEGER:
        return std::int64_t{sqlite3_column_int64(statement, column)};
      case SQLITE_FLOAT:
        return sqlite3_column_double(statement, column);
      case SQLITE_TEXT:
        return std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, column)),
                           static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
      default:
        return std::monostate();
    }
  }

  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> db_{nullptr, sqlite3_close};
};

// All rows of a query to the logs.
inline SqlRows ask(sql::Database& database, const std::string& sql) {
  SqlRows rows;
  database.query(sql, [](const auto&) {}, [&](const auto& row) { rows.push_back(row); });
  return rows;
}

inline std::string show(const SqlRows& rows) {
  std::string out;
  for (const auto& row : rows) {
    for (const sql::SqlValue& value : row) {
      if (const auto* integer = std::get_if<std::int64_t>(&value)) out += std::to_string(*integer);
      if (const auto* real = std::get_if<double>(&value)) out += std::to_string(*real);
      if (const auto* text = std::get_if<std::string>(&value)) out += "'" + *text + "'";
      if (std::holds_alternative<std::monostate>(value)) out += "NULL";
      out += ' ';
    }
    out += '\n';
  }
  return out;
}

}  // namespace ranklog::test
