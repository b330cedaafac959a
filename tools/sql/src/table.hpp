#pragma once
// What a table of logs is to the glue that shows it to SQLite (virtual_table.hpp).

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "filter.hpp"
#include "ranklog/sql/catalog.hpp"
#include "ranklog/sql/module.hpp"

namespace ranklog::sql {

struct ColumnSpec {
  std::string name;
  std::string type;  // INTEGER, REAL, TEXT, or empty where values keep their own
  std::string help;
  Pushdown pushdown = Pushdown::kNone;
  bool hidden = false;
};

// A scan in progress. Before the first next() it stands before the first row.
class Rows {
 public:
  virtual ~Rows() = default;
  [[nodiscard]] virtual bool next() = 0;  // false at the end
  virtual void column(sqlite3_context* out, int index) = 0;
  // Of the row, and the same in every scan: SQLite reads A OR B in two scans and tells by it what it has
  // seen.
  [[nodiscard]] virtual std::int64_t row_id() const = 0;
};

// Room for 8 M files with 2^40 rows each.
[[nodiscard]] inline std::int64_t row_id_of(const SourceFile& source, std::uint64_t ordinal) {
  return static_cast<std::int64_t>((std::uint64_t{source.index} << 40) + ordinal);
}

class Table {
 public:
  explicit Table(std::vector<ColumnSpec> columns) : columns_(std::move(columns)) {}
  virtual ~Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  [[nodiscard]] const std::vector<ColumnSpec>& columns() const noexcept { return columns_; }
  // Of the whole table, for SQLite's planner.
  [[nodiscard]] virtual double expected_rows() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Rows> scan(const Filter& filter) const = 0;

 private:
  std::vector<ColumnSpec> columns_;
};

// Makes a table over a catalog that outlives it.
using MakeTable = std::unique_ptr<Table> (*)(Catalog& catalog, const ModuleOptions& options);

struct TableKind {
  const char* name;
  const char* help;
  MakeTable make;
};
[[nodiscard]] const std::vector<TableKind>& table_kinds();

[[nodiscard]] std::unique_ptr<Table> make_points(Catalog& catalog, const ModuleOptions& options);
[[nodiscard]] std::unique_ptr<Table> make_history(Catalog& catalog, const ModuleOptions& options);
[[nodiscard]] std::unique_ptr<Table> make_series(Catalog& catalog, const ModuleOptions& options);
[[nodiscard]] std::unique_ptr<Table> make_runs(Catalog& catalog, const ModuleOptions& options);
[[nodiscard]] std::unique_ptr<Table> make_config(Catalog& catalog, const ModuleOptions& options);
[[nodiscard]] std::unique_ptr<Table> make_events(Catalog& catalog, const ModuleOptions& options);
[[nodiscard]] std::unique_ptr<Table> make_artifacts(Catalog& catalog, const ModuleOptions& options);

}  // namespace ranklog::sql
