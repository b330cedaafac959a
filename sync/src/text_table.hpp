#pragma once
// Aligned columns for a terminal.

#include <cstdint>
#include <string>
#include <vector>

namespace ranklog::sync {

class TextTable {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };
  struct ColumnHead {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit TextTable(std::vector<ColumnHead> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Each line with `indent` before it and '\n' after it.
  [[nodiscard]] std::string text(const std::string& indent) const;

 private:
  void append_row(std::string& out, const std::vector<std::string>& cells,
                  const std::vector<std::size_t>& widths) const;

  std::vector<ColumnHead> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ranklog::sync
