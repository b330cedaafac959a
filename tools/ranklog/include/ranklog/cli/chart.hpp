#pragma once
// A line chart in characters: title, axes with labels, lines, legend.

#include <string>
#include <vector>

#include "ranklog/cli/axis.hpp"

namespace ranklog::cli {

struct ChartPoint {
  double x = 0;
  double y = 0;        // finite
  bool joined = true;  // by a line to the point before it
};

struct ChartSeries {
  std::string label;
  std::vector<ChartPoint> points;  // by x
};

struct ChartOptions {
  std::string title;
  std::string x_label = "step";
  int width = 80;                  // columns of the whole chart
  int height = 24;                 // lines of the whole chart, title and legend included
  Scale y_scale = Scale::kLinear;  // for kLog every y is positive
  bool ascii = false;
  bool color = false;
};

// Lines that end in '\n'. At least one series has a point. Neither width nor height is exceeded as long as
// there are 20 columns and 9 lines.
[[nodiscard]] std::string render_chart(const std::vector<ChartSeries>& series, const ChartOptions& options);

}  // namespace ranklog::cli
