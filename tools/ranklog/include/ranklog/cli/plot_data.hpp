#pragma once
// What a plot shows: one line a key and rank, with what cannot be drawn counted.

#include <cstdint>
#include <string>
#include <vector>

#include "ranklog/cli/plot_points.hpp"
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
//
// Memory: all that one rank has logged under the keys, and of every line what outline() keeps.
[[nodiscard]] PlotData load_plot(sql::Catalog& catalog, const PlotRequest& request);

// Every key that any of the files has.
[[nodiscard]] std::vector<std::string> known_keys(sql::Catalog& catalog);

}  // namespace ranklog::cli
