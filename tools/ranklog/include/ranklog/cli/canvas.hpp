#pragma once
// Dots in character cells: 2 across and 4 down a cell, as braille patterns have them.

#include <cstdint>
#include <string>
#include <vector>

namespace ranklog::cli {

struct CanvasCell {
  std::uint8_t dots = 0;  // bit 2 * row + column of the dot, rows from the top
  int layer = -1;         // that was drawn last here
  bool mixed = false;     // several layers meet
};

// Dot (0, 0) is at the top left. Dots outside are left out, so a line may leave the canvas.
class Canvas {
 public:
  static constexpr int kDotsAcross = 2;
  static constexpr int kDotsDown = 4;

  Canvas(int columns, int rows);  // in cells, at least 1 x 1

  [[nodiscard]] int columns() const noexcept { return columns_; }
  [[nodiscard]] int rows() const noexcept { return rows_; }
  [[nodiscard]] int dot_columns() const noexcept { return columns_ * kDotsAcross; }
  [[nodiscard]] int dot_rows() const noexcept { return rows_ * kDotsDown; }
  [[nodiscard]] const CanvasCell& cell(int column, int row) const;

  void dot(int x, int y, int layer);
  void line(int x0, int y0, int x1, int y1, int layer);  // both ends included

 private:
  int columns_, rows_;
  std::vector<CanvasCell> cells_;
};

// How a cell is shown. Braille tells where in the cell the line runs, but layers apart only by colour;
// markers are one sign a layer, and one for cells where layers meet.
enum class Glyphs : unsigned char { kBraille, kMarkers, kAsciiLine, kAsciiMarkers };

// UTF-8, one column wide; a blank for an empty cell.
[[nodiscard]] std::string glyph_of(const CanvasCell& cell, Glyphs glyphs);
// What a legend shows for a layer.
[[nodiscard]] std::string legend_glyph(int layer, Glyphs glyphs);

}  // namespace ranklog::cli
