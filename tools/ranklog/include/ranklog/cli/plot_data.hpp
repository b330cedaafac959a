#pragma once
// What a plot shows: one line a key and rank, with what cannot be drawn counted.

#include <cstdint>
#include <string>
#include <vector>

#include "ranklog/cli/chart.hpp"
#include "ranklog/cli/ranges.hpp"
#include "ranklog/sql/catalog.hpp"

namespace ranklog::cli {

struct PlotRequest {
  std::vector<std::string> keys;  // display forms
  RankSet ranks;
  sql::StepRange steps;
  Scale y_scale = Scale::kLinear;
  double smooth = 0;  // weight of the past in [0, 1); 0: as logged
};

// What was found and is not on the chart.
struct NotDrawn {
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t not_positive = 0;  // on a log axis
  std::uint64_t not_number = 0;    // texts, JSON, null
  std::uint64_t gaps = 0;          // stretches without points, not bridged by a line
};

struct PlotLine {
  const Experiment* experiment = nullptr;
  std::string key;
  int rank = 0;
  std::vector<ChartPoint> points;
};

struct PlotData {
  std::vector<PlotLine> lines;  // by key, experiment, rank; only those for which anything was logged
  NotDrawn not_drawn;
  std::uint64_t points = 0;  // drawn
};

// Attempts are joined as a chart has them: what a later one replaced is left out, and for a step that was
// logged twice the later value counts.
[[nodiscard]] PlotData load_plot(sql::Catalog& catalog, const PlotRequest& request);

// A value as it was logged.
struct PlotSample {
  double step = 0;
  double value = 0;
  bool number = true;  // false for texts, JSON and null: the line breaks there
};

// Where the line breaks: at values that cannot be drawn, and where the way to the next step is over ten times
// as long as the ways before and after it. Smoothing is an exponential moving average, corrected for its
// start.
[[nodiscard]] std::vector<ChartPoint> chart_points(const std::vector<PlotSample>& samples, Scale y_scale,
                                                   double smooth, NotDrawn& not_drawn);

// Every key that any of the files has.
[[nodiscard]] std::vector<std::string> known_keys(sql::Catalog& catalog);

}  // namespace ranklog::cli
