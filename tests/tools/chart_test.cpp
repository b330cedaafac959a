#include "ranklog/cli/chart.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

#include "ranklog/cli/text.hpp"

namespace ranklog::cli {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

ChartSeries diagonal(int points) {
  ChartSeries series{"rank 0", {}};
  for (int i = 0; i < points; ++i)
    series.points.push_back({static_cast<double>(i), static_cast<double>(i), true});
  return series;
}

ChartOptions small() {
  ChartOptions options;
  options.title = "loss";
  options.width = 24;
  options.height = 10;
  return options;
}

// The dots of the plot area, read back from the braille patterns: U+2800 has none, and bit n of what is added
// to it is dot n + 1 of the standard's numbering.
std::set<std::pair<int, int>> dots_of(const std::vector<std::string>& plot_lines) {
  constexpr std::pair<int, int> kPlace[8] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}};
  std::set<std::pair<int, int>> dots;
  for (std::size_t row = 0; row < plot_lines.size(); ++row) {
    std::string_view rest = plot_lines[row];
    int column = 0;
    bool inside = false;
    while (!rest.empty()) {
      const CodePoint c = decode_utf8(rest);
      rest.remove_prefix(c.bytes);
      if (!inside) {
        inside = c.value == U'│' || c.value == U'┤';
        continue;
      }
      for (unsigned bit = 0; c.value >= 0x2800 && bit < 8; ++bit) {
        if (((c.value - 0x2800) >> bit & 1) != 0) {
          dots.insert({2 * column + kPlace[bit].first, 4 * static_cast<int>(row) + kPlace[bit].second});
        }
      }
      ++column;
    }
  }
  return dots;
}

TEST(Chart, KnownDataIsDrawnDotByDot) {
  // 10 lines leave 7 rows, which are 28 dots; 24 columns less the labels leave 20, which are 40 dots. With a
  // point for every column of dots and values that change by one dot at most, each point is one dot.
  const int walk[40] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 12, 12, 11, 10, 11, 12, 13,
                        14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 26, 25, 24, 23, 22, 21};
  ChartSeries series{"rank 0", {}};
  std::set<std::pair<int, int>> expected;
  for (int i = 0; i < 40; ++i) {
    series.points.push_back({static_cast<double>(i), static_cast<double>(walk[i]), true});
    expected.insert({i, 27 - walk[i]});
  }
  auto lines = lines_of(render_chart({series}, small()));
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(dots_of({lines.begin() + 1, lines.begin() + 8}), expected);
}

TEST(Chart, TheFrameStandsAroundTheLine) {
  EXPECT_EQ(render_chart({diagonal(11)}, small()),
            "loss\n"
            "10 ┤                 ⣀⠔⠊\n"
            "   │              ⡠⠔⠉\n"
            "   │           ⢀⠔⠊\n"
            " 5 ┤        ⢀⡠⠔⠁\n"
            "   │      ⡠⠒⠁\n"
            "   │  ⢀⡠⠔⠉\n"
            " 0 ┤⡠⠒⠁\n"
            "   └┬─────────┬────────┬\n"
            "    0         5     step\n");
}

TEST(Chart, UnjoinedPointsStandAlone) {
  ChartSeries series{"rank 0", {{0, 0, true}, {1, 1, true}, {9, 1, false}, {10, 0, true}}};
  const auto lines = lines_of(render_chart({series}, small()));
  // Between the two points at the top, which are the ends of two lines, nothing is drawn.
  EXPECT_EQ(lines[1].find("⠒"), std::string::npos) << lines[1];
  const std::string between = lines[1].substr(lines[1].find("┤"));
  EXPECT_NE(between.find("          "), std::string::npos) << between;
}

TEST(Chart, NeitherWidthNorHeightIsExceeded) {
  for (const int width : {20, 33, 80, 120}) {
    for (const int height : {9, 10, 24, 30}) {
      std::vector<ChartSeries> series;
      for (int i = 0; i < 5; ++i) series.push_back({"rank " + std::to_string(i), diagonal(100).points});
      ChartOptions options;
      options.title = "a title that is longer than a narrow terminal";
      options.width = width;
      options.height = height;
      const auto lines = lines_of(render_chart(series, options));
      if (width >= 33) {
        EXPECT_LE(lines.size(), static_cast<std::size_t>(height)) << width << "x" << height;
      }
      for (const auto& line : lines) {
        EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
      }
    }
  }
}

TEST(Chart, AConstantLiesInTheMiddle) {
  ChartSeries series{"rank 0", {{0, 3, true}, {10, 3, true}}};
  const auto lines = lines_of(render_chart({series}, small()));
  EXPECT_NE(lines[4].find("⠤⠤⠤⠤"), std::string::npos) << lines[4];
}

TEST(Chart, OnePointIsShown) {
  ChartSeries series{"rank 0", {{7, 0.125, true}}};
  const std::string text = render_chart({series}, small());
  EXPECT_NE(text.find("7"), std::string::npos) << text;
}

TEST(Chart, OnALogAxisDecadesAreEvenlySpaced) {
  ChartSeries series{"rank 0", {{0, 1, true}, {1, 10, true}, {2, 100, true}}};
  ChartOptions options = small();
  options.y_scale = Scale::kLog;
  const auto lines = lines_of(render_chart({series}, options));
  EXPECT_EQ(lines[1].substr(0, 3), "100") << lines[1];
  EXPECT_EQ(lines[4].substr(0, 3), " 10") << lines[4];
  EXPECT_EQ(lines[7].substr(0, 3), "  1") << lines[7];
}

TEST(Chart, ExtremeValuesDoNotBreakTheAxis) {
  ChartSeries series{"rank 0", {{0, -1.7e308, true}, {1, 1.7e308, true}, {2, 5e-324, true}}};
  const auto lines = lines_of(render_chart({series}, small()));
  EXPECT_EQ(lines.size(), 10u);
}

TEST(Chart, WithoutColourEverySeriesHasItsOwnSign) {
  ChartSeries up = diagonal(5);
  ChartSeries down{"rank 1", {{0, 4, true}, {4, 0, true}}};
  const std::string text = render_chart({up, down}, small());
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("● rank 0  ○ rank 1"), std::string::npos) << text;
}

TEST(Chart, WithColourEverySeriesHasItsOwnColour) {
  ChartOptions options = small();
  options.color = true;
  const std::string text = render_chart({diagonal(5), {"rank 1", {{0, 4, true}, {4, 0, true}}}}, options);
  EXPECT_NE(text.find("\x1b[36m━━\x1b[0m rank 0"), std::string::npos) << text;
  EXPECT_NE(text.find("\x1b[33m━━\x1b[0m rank 1"), std::string::npos) << text;
}

TEST(Chart, AsciiChartsAreAscii) {
  ChartOptions options = small();
  options.ascii = true;
  for (const auto& series : {std::vector{diagonal(9)}, std::vector{diagonal(9), diagonal(9)}}) {
    for (const char c : render_chart(series, options)) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  }
}

std::vector<std::string> labels_of(double low, double high, int wanted, Scale scale = Scale::kLinear) {
  std::vector<std::string> labels;
  for (const Tick& tick : Axis(low, high, scale).ticks(wanted)) labels.push_back(tick.label);
  return labels;
}

TEST(Axis, TicksAreRoundNumbersInsideTheRange) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels_of(0, 449, 4), (Labels{"0", "200", "400"}));
  EXPECT_EQ(labels_of(0.02, 2.3, 5), (Labels{"0.5", "1.0", "1.5", "2.0"}));
  EXPECT_EQ(labels_of(-1, 1, 4), (Labels{"-1.0", "-0.5", "0.0", "0.5", "1.0"}));
  EXPECT_EQ(labels_of(0, 20000, 4), (Labels{"0", "5k", "10k", "15k", "20k"}));
  EXPECT_EQ(labels_of(0, 3e6, 3), (Labels{"0", "1M", "2M", "3M"}));
  EXPECT_EQ(labels_of(0, 2e-5, 2), (Labels{"0", "1e-05", "2e-05"}));
  EXPECT_EQ(labels_of(1e-5, 10, 8, Scale::kLog),
            (Labels{"1e-05", "0.0001", "0.001", "0.01", "0.1", "1", "10"}));
}

}  // namespace
}  // namespace ranklog::cli
