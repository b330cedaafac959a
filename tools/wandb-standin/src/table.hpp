#pragma once
// A table for a terminal: columns as wide as needed, and cut with an ellipsis where they do not fit.

#include <string>
#include <vector>

namespace ranklog::standin {

// Columns that a UTF-8 text takes on a terminal, one a code point.
[[nodiscard]] std::size_t display_width(const std::string& text);
// Cut to `width` columns, the last an ellipsis if something is missing.
[[nodiscard]] std::string cut_to_width(const std::string& text, std::size_t width);

class Table {
 public:
  enum class Align { kLeft, kRight };

  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool shrinks = false;  // may be cut when the table is too wide
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add_row(std::vector<std::string> cells) { rows_.push_back({std::move(cells), ""}); }
  // A line under the row before, indented, cut at the table's width.
  void add_note(std::string text) { rows_.push_back({{}, std::move(text)}); }
  // Each line begins with two spaces and ends without trailing ones.
  [[nodiscard]] std::string render(std::size_t width) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string note;
  };

  [[nodiscard]] std::vector<std::size_t> column_widths(std::size_t width) const;
  [[nodiscard]] std::string line(const std::vector<std::string>& cells,
                                 const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace ranklog::standin
