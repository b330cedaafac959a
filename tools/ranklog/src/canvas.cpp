#include "ranklog/cli/canvas.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

namespace ranklog::cli {
namespace {

constexpr std::array<const char*, 8> kMarkers{"●", "○", "■", "□", "▲", "△", "◆", "◇"};
constexpr const char* kMixedMarker = "▒";
constexpr std::string_view kAsciiMarkers = "0123456789abcdef";

// Braille numbers its dots down the left column, then the right one, with the fourth row added later.
std::string braille(std::uint8_t dots) {
  constexpr std::array<std::uint8_t, 8> kBit{0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80};
  unsigned pattern = 0;
  for (unsigned i = 0; i < kBit.size(); ++i) {
    if ((dots >> i & 1u) != 0) pattern |= kBit[i];
  }
  // U+2800 + pattern, in UTF-8.
  return {static_cast<char>(0xE2), static_cast<char>(0xA0 | (pattern >> 6)),
          static_cast<char>(0x80 | (pattern & 0x3F))};
}

// The sign that lies about where the dots do.
std::string ascii_line(std::uint8_t dots) {
  const unsigned rows_used =
      (dots & 0x03 ? 1u : 0u) | (dots & 0x0C ? 2u : 0u) | (dots & 0x30 ? 4u : 0u) | (dots & 0xC0 ? 8u : 0u);
  if (std::popcount(rows_used) >= 3) return "|";
  if ((rows_used & 8u) != 0) return (rows_used & 4u) != 0 ? "." : "_";
  return (rows_used & 1u) != 0 && (rows_used & 4u) == 0 ? "'" : "-";
}

}  // namespace

Canvas::Canvas(int columns, int rows)
    : columns_(std::max(1, columns)),
      rows_(std::max(1, rows)),
      cells_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_)) {}

const CanvasCell& Canvas::cell(int column, int row) const {
  return cells_.at(static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
                   static_cast<std::size_t>(column));
}

void Canvas::dot(int x, int y, int layer) {
  if (x < 0 || y < 0 || x >= dot_columns() || y >= dot_rows()) return;
  CanvasCell& cell = cells_[static_cast<std::size_t>(y / kDotsDown) * static_cast<std::size_t>(columns_) +
                            static_cast<std::size_t>(x / kDotsAcross)];
  const int bit = (y % kDotsDown) * kDotsAcross + x % kDotsAcross;
  cell.dots = static_cast<std::uint8_t>(cell.dots | 1u << bit);
  if (cell.layer >= 0 && cell.layer != layer) cell.mixed = true;
  cell.layer = layer;
}

void Canvas::line(int x0, int y0, int x1, int y1, int layer) {
  // Bresenham's, in all directions.
  const int dx = std::abs(x1 - x0);
  const int dy = -std::abs(y1 - y0);
  const int step_x = x0 < x1 ? 1 : -1;
  const int step_y = y0 < y1 ? 1 : -1;
  int error = dx + dy;
  while (true) {
    dot(x0, y0, layer);
    if (x0 == x1 && y0 == y1) return;
    const int doubled = 2 * error;
    if (doubled >= dy) {
      error += dy;
      x0 += step_x;
    }
    if (doubled <= dx) {
      error += dx;
      y0 += step_y;
    }
  }
}

std::string glyph_of(const CanvasCell& cell, Glyphs glyphs) {
  if (cell.dots == 0) return " ";
  switch (glyphs) {
    case Glyphs::kBraille:
      return braille(cell.dots);
    case Glyphs::kAsciiLine:
      return ascii_line(cell.dots);
    case Glyphs::kMarkers:
      return cell.mixed ? kMixedMarker : legend_glyph(cell.layer, glyphs);
    case Glyphs::kAsciiMarkers:
      return cell.mixed ? "*" : legend_glyph(cell.layer, glyphs);
  }
  return " ";
}

std::string legend_glyph(int layer, Glyphs glyphs) {
  const auto index = static_cast<std::size_t>(layer);
  switch (glyphs) {
    case Glyphs::kBraille:
      return "━━";
    case Glyphs::kAsciiLine:
      return "--";
    case Glyphs::kMarkers:
      return kMarkers[index % kMarkers.size()];
    case Glyphs::kAsciiMarkers:
      return std::string(1, kAsciiMarkers[index % kAsciiMarkers.size()]);
  }
  return "";
}

}  // namespace ranklog::cli
