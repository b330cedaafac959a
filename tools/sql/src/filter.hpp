#pragma once
// What a query's WHERE says about the columns that are worth pushing down.

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/sql/point_reader.hpp"

namespace ranklog::sql {

enum class Pushdown : unsigned char {
  kNone,
  kInteger,    // =, <, <=, >, >=
  kText,       // =, GLOB
  kSeconds,    // as kInteger, over real numbers; for skipping chunks
  kParameter,  // = only: not a property of the row but a switch of the scan
};

// True if the constraint (an SQLITE_INDEX_CONSTRAINT_ number) on such a column can be pushed down.
[[nodiscard]] bool can_push(Pushdown pushdown, int operation);

// SQLite checks every constraint again on the rows that it gets, so a filter may let through too much, and
// never too little. Comparisons whose outcome hangs on SQLite's rules of affinity (rank = '3') are therefore
// left to it.
class Filter {
 public:
  // `operation` as can_push() accepted it.
  void add(int column, Pushdown pushdown, int operation, sqlite3_value* value);

  // Something is compared with NULL or lies between numbers that leave nothing: no row fits.
  [[nodiscard]] bool impossible() const noexcept { return impossible_; }
  [[nodiscard]] StepRange range(int column) const;
  [[nodiscard]] bool accepts(int column, std::int64_t value) const { return range(column).holds(value); }
  [[nodiscard]] bool accepts(int column, std::string_view value) const;
  // False if no value between `low` and `high` can fit.
  [[nodiscard]] bool overlaps(int column, double low, double high) const;
  [[nodiscard]] bool parameter(int column, bool fallback) const;

 private:
  struct TextBound {
    int column, operation;
    std::string text;
  };
  struct RealBound {
    int column, operation;
    double value;
  };

  void narrow(int column, StepRange to);

  bool impossible_ = false;
  std::map<int, StepRange> ranges_;
  std::vector<TextBound> texts_;
  std::vector<RealBound> reals_;
  std::map<int, bool> parameters_;
};

}  // namespace ranklog::sql
