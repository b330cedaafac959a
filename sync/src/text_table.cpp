#include "text_table.hpp"

#include <algorithm>

namespace ranklog::sync {
namespace {

// Characters, near enough: bytes that do not continue one.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string TextTable::text(const std::string& indent) const {
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (const ColumnHead& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(width_of(column.title));
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out = indent;
  append_row(out, titles, widths);
  for (const auto& row : rows_) {
    out += indent;
    append_row(out, row, widths);
  }
  return out;
}

void TextTable::append_row(std::string& out, const std::vector<std::string>& cells,
                           const std::vector<std::size_t>& widths) const {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - width_of(cells[i]), ' ');
    if (i > 0) out += "  ";
    if (columns_[i].align == Align::kRight) out += padding;
    out += cells[i];
    if (columns_[i].align == Align::kLeft && i + 1 < cells.size()) out += padding;
  }
  out.push_back('\n');
}

}  // namespace ranklog::sync
