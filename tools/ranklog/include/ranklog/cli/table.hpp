#pragma once
// Aligned columns for people.

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "ranklog/cli/text.hpp"

namespace ranklog::cli {

struct TableColumn {
  std::string title;
  Align align = Align::kLeft;
  bool shrink = true;  // may be cut when the table is wider than the terminal
};

struct TableCell {
  std::string text;
  int color = 0;  // ANSI colour code; 0: none

  TableCell(std::string cell_text, int ansi_color = 0) : text(std::move(cell_text)), color(ansi_color) {}
  TableCell(const char* cell_text) : text(cell_text) {}
};

// Collects rows, then prints them two blanks apart under their titles. Cells are made printable; colours do
// not count as width; no line ends in blanks.
class Table {
 public:
  explicit Table(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

  void add(std::vector<TableCell> row);  // one cell a column
  [[nodiscard]] std::size_t rows() const noexcept { return rows_.size(); }
  // With `max_width`, the widest columns that may shrink are cut until a line fits, to no less than 8
  // columns.
  void print(std::ostream& out, bool color, std::optional<std::size_t> max_width = {}) const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths(std::optional<std::size_t> max_width) const;

  std::vector<TableColumn> columns_;
  std::vector<std::vector<TableCell>> rows_;
};

}  // namespace ranklog::cli
