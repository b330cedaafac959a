#include "table.hpp"

#include <algorithm>
#include <numeric>

namespace ranklog::standin {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kGap = 2;
constexpr std::size_t kMinShrunk = 6;
constexpr std::size_t kNoteIndent = 4;

}  // namespace

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string cut_to_width(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  std::string out;
  std::size_t columns = 0;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (starts && ++columns >= width) break;
    out += c;
  }
  return out + "…";
}

std::vector<std::size_t> Table::column_widths(std::size_t width) const {
  std::vector<std::size_t> widths;
  widths.reserve(columns_.size());
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row.cells[i]));
    }
  }
  const auto total = [&] {
    return kIndent + std::accumulate(widths.begin(), widths.end(), std::size_t{0}) +
           kGap * (widths.size() - 1);
  };
  while (total() > width) {
    std::size_t widest = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].shrinks || widths[i] <= kMinShrunk) continue;
      if (widest == columns_.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
  std::string out(kIndent, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string text = cut_to_width(cells[i], widths[i]);
    const std::string padding(widths[i] - display_width(text), ' ');
    if (i > 0) out += std::string(kGap, ' ');
    out += columns_[i].align == Align::kRight ? padding + text : text + padding;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out + "\n";
}

std::string Table::render(std::size_t width) const {
  const auto widths = column_widths(width);
  std::vector<std::string> titles;
  titles.reserve(columns_.size());
  for (const Column& column : columns_) titles.push_back(column.title);
  std::string out = line(titles, widths);
  for (const Row& row : rows_) {
    if (row.note.empty()) {
      out += line(row.cells, widths);
    } else {
      out += std::string(kNoteIndent, ' ') + cut_to_width(row.note, width - kNoteIndent) + "\n";
    }
  }
  return out;
}

}  // namespace ranklog::standin
