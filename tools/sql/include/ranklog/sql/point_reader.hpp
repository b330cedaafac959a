#pragma once
// Logged values one by one, read from no more files and chunks than the selection needs.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/sql/catalog.hpp"

namespace ranklog::sql {

// Both ends belong to it.
struct StepRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool empty() const noexcept { return low > high; }
  [[nodiscard]] bool holds(std::int64_t step) const noexcept { return low <= step && step <= high; }
  [[nodiscard]] bool overlaps(std::int64_t min, std::int64_t max) const noexcept {
    return min <= high && low <= max;
  }
};

struct PointSelection {
  std::function<bool(const SourceFile&)> file;     // empty: all
  std::function<bool(std::string_view key)> key;   // display form; empty: all
  std::function<bool(const RowGroupInfo&)> chunk;  // false: surely nothing wanted in it; empty: read it
  StepRange steps;
  bool superseded = false;  // give out superseded rows too
};

struct Point {
  const SourceFile* source = nullptr;
  std::uint64_t ordinal = 0;  // in the file: the same in every reading of it
  std::uint64_t sequence = 0;
  std::int64_t step = 0;
  std::int64_t time_ns = 0;
  bool superseded = false;
  const std::string* key = nullptr;  // display form
  ValueView value;
};

// File by file as the catalog has them; in a file in the order in which chunks were sealed, then the tail;
// row by row, and in a row by key as it was logged.
class PointReader {
 public:
  PointReader(Catalog& catalog, PointSelection selection);

  // False at the end. What the point refers to lives until the next call.
  [[nodiscard]] bool next(Point& point);

 private:
  [[nodiscard]] bool next_file();
  [[nodiscard]] bool next_group();
  [[nodiscard]] bool next_row();
  [[nodiscard]] bool wanted(const RowGroupInfo& info) const;
  [[nodiscard]] std::optional<std::vector<KeyId>> wanted_keys(const RowGroupInfo& info) const;
  void pick_columns(const RowGroupInfo& info);

  Catalog& catalog_;
  PointSelection selection_;
  std::size_t next_file_ = 0;
  const SourceFile* source_ = nullptr;
  std::shared_ptr<const OpenFile> open_;
  std::vector<bool> key_wanted_;  // by KeyId
  std::size_t next_group_ = 0;
  std::shared_ptr<const RowGroup> group_;
  struct WantedColumn {
    const Column* column;
    std::size_t position;  // among all columns of the group
  };
  std::vector<WantedColumn> columns_;
  std::size_t group_columns_ = 0;  // how many there are in all
  std::size_t next_row_ = 0;
  std::size_t row_ = 0;
  bool row_superseded_ = false;
  std::size_t next_column_ = 0;
};

}  // namespace ranklog::sql
