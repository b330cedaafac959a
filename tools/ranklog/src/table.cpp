#include "ranklog/cli/table.hpp"

#include <algorithm>
#include <numeric>

#include "ranklog/cli/terminal.hpp"

namespace ranklog::cli {
namespace {

constexpr std::size_t kLeastWidth = 8;
constexpr std::string_view kBetween = "  ";

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void Table::add(std::vector<TableCell> row) {
  for (TableCell& cell : row) cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::widths(std::optional<std::size_t> max_width) const {
  std::vector<std::size_t> widths;
  widths.reserve(columns_.size());
  for (const TableColumn& column : columns_) widths.push_back(display_width(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i].text));
    }
  }
  if (!max_width || widths.empty()) return widths;
  const auto total = [&] {
    return std::accumulate(widths.begin(), widths.end(), (widths.size() - 1) * kBetween.size());
  };
  while (total() > *max_width) {
    std::optional<std::size_t> widest;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (!columns_[i].shrink || widths[i] <= kLeastWidth) continue;
      if (!widest || widths[i] > widths[*widest]) widest = i;
    }
    if (!widest) break;
    --widths[*widest];
  }
  return widths;
}

void Table::print(std::ostream& out, bool color, std::optional<std::size_t> max_width) const {
  const std::vector<std::size_t> width = widths(max_width);
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) line += kBetween;
    line += pad_to(cut_to(columns_[i].title, width[i]), width[i], columns_[i].align);
  }
  out << colored(color, 1, without_trailing_blanks(line)) << '\n';
  for (const auto& row : rows_) {
    line.clear();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += kBetween;
      const std::string text = cut_to(row[i].text, width[i]);
      const std::string blanks(width[i] - std::min(width[i], display_width(text)), ' ');
      const std::string cell = colored(color, row[i].color, text);
      line += columns_[i].align == Align::kLeft ? cell + blanks : blanks + cell;
    }
    out << without_trailing_blanks(line) << '\n';
  }
}

}  // namespace ranklog::cli
