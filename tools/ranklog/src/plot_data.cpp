#include "ranklog/cli/plot_data.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ranklog/sql/point_reader.hpp"

namespace ranklog::cli {
namespace {

using sql::Catalog;
using sql::SourceFile;

// A value and what decides which of several at one step counts.
struct Logged {
  std::int64_t step = 0;
  int attempt = 0;
  std::uint64_t sequence = 0;
  ValueView value;  // a number, a bool, or null for all that cannot be drawn
};

ValueView drawable(ValueView value) {
  if (value.kind() == ValueKind::kBool) return ValueView(value.as_bool() ? 1.0 : 0.0);
  return value.is_number() ? value : ValueView();
}

// Keeps the one that counts for each step; by step.
void settle(std::vector<Logged>& logged) {
  const auto order = [](const Logged& one) { return std::tuple(one.step, one.attempt, one.sequence); };
  const auto before = [&](const Logged& a, const Logged& b) { return order(a) < order(b); };
  if (!std::is_sorted(logged.begin(), logged.end(), before)) std::sort(logged.begin(), logged.end(), before);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < logged.size(); ++i) {
    if (i + 1 < logged.size() && logged[i + 1].step == logged[i].step) continue;
    logged[kept++] = logged[i];
  }
  logged.resize(kept);
}

// What a rank has logged, by index into the request's keys.
using LoggedOfKeys = std::map<std::size_t, std::vector<Logged>>;

LoggedOfKeys read_rank(Catalog& catalog, const PlotRequest& request, const Experiment* experiment, int rank) {
  LoggedOfKeys logged;
  sql::PointSelection selection;
  selection.steps = request.steps;
  selection.file = [=](const SourceFile& source) {
    return source.experiment == experiment && source.identity().rank == rank;
  };
  selection.key = [&](std::string_view key) {
    return std::find(request.keys.begin(), request.keys.end(), key) != request.keys.end();
  };
  sql::PointReader reader(catalog, std::move(selection));
  sql::Point point;
  while (reader.next(point)) {
    const auto key = std::find(request.keys.begin(), request.keys.end(), *point.key) - request.keys.begin();
    logged[static_cast<std::size_t>(key)].push_back(
        {point.step, point.source->attempt->number, point.sequence, drawable(point.value)});
  }
  return logged;
}

std::vector<PlotSample> samples_of(const std::vector<Logged>& logged) {
  std::vector<PlotSample> samples;
  samples.reserve(logged.size());
  for (const Logged& one : logged) {
    const bool number = one.value.is_number();
    samples.push_back({static_cast<double>(one.step), number ? one.value.as_double() : 0, number});
  }
  return samples;
}

}  // namespace

PlotData load_plot(Catalog& catalog, const PlotRequest& request) {
  std::set<std::pair<const Experiment*, int>> ranks;
  for (const SourceFile& source : catalog.files()) {
    if (request.ranks.holds(source.identity().rank))
      ranks.insert({source.experiment, source.identity().rank});
  }
  PlotData data;
  std::map<std::tuple<std::size_t, const Experiment*, int>, PlotLine> lines;
  // Rank by rank: what one of them has logged is held as a whole, but of the others only what is drawn.
  for (const auto& [experiment, rank] : ranks) {
    for (auto& [key, logged] : read_rank(catalog, request, experiment, rank)) {
      settle(logged);
      auto points = chart_points(samples_of(logged), request.y_scale, request.smooth, data.not_drawn);
      data.points += points.size();
      lines[{key, experiment, rank}] = {experiment, request.keys[key], rank, outline(std::move(points))};
    }
  }
  for (auto& [place, line] : lines) data.lines.push_back(std::move(line));
  return data;
}

std::vector<std::string> known_keys(Catalog& catalog) {
  std::set<std::string> keys;
  for (const SourceFile& source : catalog.files()) {
    if (const auto open = catalog.open(source)) keys.insert(open->keys.begin(), open->keys.end());
  }
  return {keys.begin(), keys.end()};
}

}  // namespace ranklog::cli
