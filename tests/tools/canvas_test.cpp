#include "ranklog/cli/canvas.hpp"

#include <gtest/gtest.h>

namespace ranklog::cli {
namespace {

std::string drawn(const Canvas& canvas, Glyphs glyphs = Glyphs::kBraille) {
  std::string out;
  for (int row = 0; row < canvas.rows(); ++row) {
    for (int column = 0; column < canvas.columns(); ++column) {
      out += glyph_of(canvas.cell(column, row), glyphs);
    }
    out += '\n';
  }
  return out;
}

TEST(Canvas, EachDotHasItsPlaceInTheBraillePattern) {
  // U+2801, U+2808, U+2802, U+2810, U+2804, U+2820, U+2840, U+2880: row by row, left then right.
  const char* patterns[] = {"⠁", "⠈", "⠂", "⠐", "⠄", "⠠", "⡀", "⢀"};
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 2; ++x) {
      Canvas canvas(1, 1);
      canvas.dot(x, y, 0);
      EXPECT_EQ(drawn(canvas), std::string(patterns[2 * y + x]) + '\n');
    }
  }
}

TEST(Canvas, AFullCellIsEightDots) {
  Canvas canvas(1, 1);
  for (int y = 0; y < 4; ++y) canvas.line(0, y, 1, y, 0);
  EXPECT_EQ(drawn(canvas), "⣿\n");
}

TEST(Canvas, LinesRunThroughEveryColumn) {
  Canvas canvas(4, 2);
  canvas.line(0, 7, 7, 0, 0);
  for (int x = 0; x < 8; ++x) {
    for (int y = 0; y < 8; ++y) {
      const bool drawn = (canvas.cell(x / 2, y / 4).dots >> (2 * (y % 4) + x % 2) & 1) != 0;
      EXPECT_EQ(drawn, y == 7 - x) << x << ", " << y;
    }
  }
  EXPECT_EQ(drawn(canvas), "  ⡠⠊\n⡠⠊  \n");
}

TEST(Canvas, ALineIsTheSameInBothDirections) {
  Canvas forth(5, 3);
  Canvas back(5, 3);
  forth.line(0, 2, 9, 9, 0);
  back.line(9, 9, 0, 2, 0);
  int differing = 0;
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 5; ++column) {
      differing += (forth.cell(column, row).dots == 0) != (back.cell(column, row).dots == 0) ? 1 : 0;
    }
  }
  EXPECT_EQ(differing, 0);
}

TEST(Canvas, DotsOutsideAreLeftOut) {
  Canvas canvas(2, 1);
  canvas.line(-5, 1, 20, 1, 0);
  canvas.dot(0, -1, 0);
  canvas.dot(0, 4, 0);
  EXPECT_EQ(drawn(canvas), "⠒⠒\n");
}

TEST(Canvas, CellsWhereLayersMeetAreMarkedAsSuch) {
  Canvas canvas(3, 1);
  canvas.line(0, 0, 3, 0, 0);
  canvas.line(2, 3, 5, 3, 1);
  EXPECT_EQ(drawn(canvas, Glyphs::kMarkers), "●▒○\n");
  EXPECT_EQ(drawn(canvas, Glyphs::kAsciiMarkers), "0*1\n");
}

TEST(Canvas, AsciiLinesShowHowHighTheLineRuns) {
  Canvas canvas(5, 1);
  canvas.line(0, 0, 1, 0, 0);
  canvas.line(2, 1, 3, 1, 0);
  canvas.line(4, 2, 5, 3, 0);
  canvas.line(6, 3, 7, 3, 0);
  canvas.line(8, 0, 8, 3, 0);
  EXPECT_EQ(drawn(canvas, Glyphs::kAsciiLine), "'-._|\n");
}

}  // namespace
}  // namespace ranklog::cli
