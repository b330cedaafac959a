#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <set>

#include "ranklog/cli/chart.hpp"
#include "ranklog/cli/command.hpp"
#include "ranklog/cli/format.hpp"
#include "ranklog/cli/inputs.hpp"
#include "ranklog/cli/plot_data.hpp"
#include "ranklog/schema/suggest.hpp"

namespace ranklog::cli {
namespace {

struct PlotOptions {
  Inputs inputs;
  std::string key;
  std::vector<std::string> more_keys;
  std::string ranks, steps;
  int width = 0, height = 0;  // 0: as the terminal is
  bool log_axis = false, ascii = false;
  double smooth = 0;
  ColorMode color = ColorMode::kAuto;
};

// More lines than this cannot be told apart.
constexpr std::size_t kMostLines = 8;

Error unknown_key(const std::string& typed, const std::vector<std::string>& keys) {
  if (keys.empty()) return {ErrorCode::kNotFound, "nothing has been logged here yet"};
  const auto meant = nearest(typed, keys);
  constexpr std::size_t kShown = 12;
  const std::vector<std::string> shown(
      keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, keys.size())));
  std::string list = meant.empty() ? "" : "did you mean " + join_alternatives(meant) + "? ";
  list += "keys here: ";
  for (const std::string& key : shown) list += (key == shown.front() ? "" : ", ") + key;
  if (keys.size() > kShown) list += " and " + std::to_string(keys.size() - kShown) + " more";
  return {ErrorCode::kNotFound, "no key '" + typed + "' has been logged", list};
}

void check_keys(const std::vector<std::string>& keys, const std::vector<std::string>& wanted) {
  for (const std::string& key : wanted) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) throw unknown_key(key, keys);
  }
}

// Without -e, the experiment that started last is meant; says so if there are others.
void keep_newest(std::vector<Experiment>& experiments) {
  if (experiments.size() <= 1) return;
  const auto newest =
      std::max_element(experiments.begin(), experiments.end(), [](const auto& a, const auto& b) {
        return a.attempts.back().start_time_ns < b.attempts.back().start_time_ns;
      });
  std::cerr << "ranklog: of " << experiments.size() << " experiments, the newest is shown: " << newest->id
            << " (-e chooses others)\n";
  Experiment kept = std::move(*newest);
  experiments.clear();
  experiments.push_back(std::move(kept));
}

// Ranks that are spread evenly over those that have one of the keys, so few that their lines can be told
// apart.
RankSet choose_ranks(sql::Catalog& catalog, const std::vector<std::string>& keys) {
  std::set<int> ranks;
  for (const sql::SourceFile& source : catalog.files()) {
    const auto open = catalog.open(source);
    if (open == nullptr) continue;
    const bool any = std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
      return std::find(open->keys.begin(), open->keys.end(), key) != open->keys.end();
    });
    if (any) ranks.insert(source.identity().rank);
  }
  const std::size_t most =
      std::max<std::size_t>(1, kMostLines / (keys.size() * catalog.experiments().size()));
  if (ranks.size() <= most) return {};
  const std::vector<int> all(ranks.begin(), ranks.end());
  std::string chosen;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t at = most == 1 ? 0 : i * (all.size() - 1) / (most - 1);
    chosen += (i == 0 ? "" : ",") + std::to_string(all[at]);
  }
  std::cerr << "ranklog: of " << all.size() << " ranks, these are shown: " << chosen
            << " (--ranks chooses others)\n";
  return RankSet::parse(chosen);
}

std::string label_of(const PlotLine& line, const PlotRequest& request, std::size_t experiments) {
  std::string label = request.keys.size() > 1 ? line.key + " " : "";
  if (experiments > 1) label += line.experiment->id + " ";
  return label + "rank " + std::to_string(line.rank);
}

std::string title_of(const PlotData& data, const PlotRequest& request, const sql::Catalog& catalog) {
  std::string title;
  for (const std::string& key : request.keys) title += (title.empty() ? "" : ", ") + key;
  if (request.smooth > 0) title += " (smoothed " + format_double(request.smooth) + ")";
  if (request.y_scale == Scale::kLog) title += " (log)";
  const Experiment& first = catalog.experiments().front();
  title += "  " + first.project + "/" + (catalog.experiments().size() == 1 ? first.id : "*");
  if (data.lines.size() == 1) title += "  rank " + std::to_string(data.lines.front().rank);
  return title;
}

std::string short_number(double value) {
  std::array<char, 32> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%.6g", value);
  return buffer.data();
}

// "88 points, steps 0 to 87, values 0.00861632 to 2.31751"
std::string extent_of(const PlotData& data) {
  if (data.points == 0) return plural(0, "point");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ChartPoint low{kInfinity, kInfinity};
  ChartPoint high{-kInfinity, -kInfinity};
  for (const PlotLine& line : data.lines) {
    for (const ChartPoint& point : line.points) {
      low = {std::min(low.x, point.x), std::min(low.y, point.y)};
      high = {std::max(high.x, point.x), std::max(high.y, point.y)};
    }
  }
  const auto step = [](double x) { return std::to_string(static_cast<std::int64_t>(x)); };
  return plural(data.points, "point") + ", steps " + step(low.x) + " to " + step(high.x) + ", values " +
         short_number(low.y) + " to " + short_number(high.y);
}

std::string caption_of(const PlotData& data) {
  const NotDrawn& missing = data.not_drawn;
  std::string out = extent_of(data);
  std::string rest;
  const auto add = [&](std::uint64_t count, const std::string& what) {
    if (count > 0) rest += (rest.empty() ? "" : ", ") + format_count(count) + " " + what;
  };
  add(missing.nan, "NaN");
  add(missing.infinite, "infinite");
  add(missing.not_positive, "not above zero");
  add(missing.not_number, "not a number");
  if (!rest.empty()) out += "; not drawn: " + rest;
  if (missing.gaps > 0) out += "; " + plural(missing.gaps, "gap");
  return out;
}

[[noreturn]] void nothing_to_draw(const PlotData& data, const PlotRequest& request,
                                  const sql::Catalog& catalog) {
  if (!data.lines.empty()) {
    throw Error(
        ErrorCode::kNotFound, "nothing to draw: " + caption_of(data),
        "ranklog query \"SELECT * FROM points WHERE key = '" + request.keys.front() + "'\" shows the values");
  }
  std::set<int> ranks;
  for (const sql::SourceFile& source : catalog.files()) ranks.insert(source.identity().rank);
  throw Error(ErrorCode::kNotFound, "no value of '" + request.keys.front() + "' at these ranks and steps",
              "there are " + plural(ranks.size(), "rank") + " from " + std::to_string(*ranks.begin()) +
                  " to " + std::to_string(*ranks.rbegin()) + ", and ranklog ls shows the last step");
}

PlotRequest request_of(const PlotOptions& options) {
  PlotRequest request;
  request.keys = {options.key};
  for (const std::string& key : options.more_keys) {
    if (std::find(request.keys.begin(), request.keys.end(), key) == request.keys.end())
      request.keys.push_back(key);
  }
  request.ranks = RankSet::parse(options.ranks);
  if (!options.steps.empty()) request.steps = parse_steps(options.steps);
  request.y_scale = options.log_axis ? Scale::kLog : Scale::kLinear;
  request.smooth = options.smooth;
  return request;
}

void draw(const PlotData& data, const PlotRequest& request, const PlotOptions& options,
          const sql::Catalog& catalog) {
  const Terminal terminal = detect_terminal(options.color);
  std::vector<ChartSeries> series;
  for (const PlotLine& line : data.lines) {
    if (!line.points.empty()) {
      series.push_back({label_of(line, request, catalog.experiments().size()), line.points});
    }
  }
  ChartOptions chart;
  chart.title = title_of(data, request, catalog);
  chart.width = options.width > 0 ? options.width : std::max(20, terminal.columns.value_or(80));
  // A line for the caption, and one for the prompt that comes next.
  chart.height = options.height > 0 ? options.height - 1 : std::clamp(terminal.rows.value_or(24) - 2, 9, 30);
  chart.y_scale = request.y_scale;
  chart.ascii = options.ascii;
  chart.color = terminal.color;
  std::cout << render_chart(series, chart) << "   " << caption_of(data) << '\n';
}

int plot(const PlotOptions& options) {
  PlotRequest request = request_of(options);
  Loaded loaded = load(options.inputs);
  if (options.inputs.experiments.empty()) keep_newest(loaded.experiments);
  sql::Catalog catalog(std::move(loaded.experiments));
  return report_problems(loaded.problems, catalog, [&] {
    const auto keys = known_keys(catalog);
    // Where nothing can be read, nobody knows what has been logged.
    if (keys.empty() && !(loaded.problems.empty() && catalog.problems().empty())) return;
    check_keys(keys, request.keys);
    if (request.ranks.all()) request.ranks = choose_ranks(catalog, request.keys);
    const PlotData data = load_plot(catalog, request);
    if (data.points == 0) nothing_to_draw(data, request, catalog);
    draw(data, request, options, catalog);
  });
}

std::string check_weight(const std::string& text) {
  double weight = -1;
  const bool number = CLI::detail::lexical_cast(text, weight);
  return number && weight >= 0 && weight < 1 ? "" : "'" + text + "' is not a number from 0 to below 1";
}

void declare(CLI::App& app, PlotOptions& options) {
  app.add_option("KEY", options.key, "what to plot, as ranklog query shows it in points.key")->required();
  app.add_option("-k,--key", options.more_keys, "one more key on the same axes; can be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY");
  app.add_option("-r,--ranks", options.ranks, "such as 0-3,7 (default: all, or 8 spread evenly)")
      ->type_name("RANKS");
  app.add_option("-s,--steps", options.steps, "such as 100:200, 100: or :200")->type_name("FROM:TO");
  options.inputs.add_experiments(app);
  app.add_flag("--log", options.log_axis, "logarithmic y axis");
  app.add_option("--smooth", options.smooth,
                 "exponential moving average: the weight of the past, from 0 to below 1")
      ->check(check_weight)
      ->type_name("ALPHA");
  app.add_option("--width", options.width, "columns (default: the terminal's, else 80)")
      ->check(CLI::Range(20, 1000).description(""))
      ->type_name("N");
  app.add_option("--height", options.height, "lines (default: the terminal's, at most 30)")
      ->check(CLI::Range(10, 1000).description(""))
      ->type_name("N");
  app.add_flag("--ascii", options.ascii, "plain ASCII instead of braille patterns");
  add_color(app, options.color);
  options.inputs.add_paths(app);
}

}  // namespace

Command plot_command() {
  return {
      "plot", "Plot a key over the steps in the terminal, a line a rank", [](CLI::App& app) {
        auto options = std::make_shared<PlotOptions>();
        declare(app, *options);
        app.footer(
            "Without colour each rank has a sign of its own, and one more stands where lines meet. Lines "
            "are\n"
            "not drawn across NaN, infinite values and gaps (steps over ten times as far apart as those\n"
            "around them); the caption counts them. Attempts are joined: what a later one replaced is left\n"
            "out. Of several experiments the newest is shown unless -e says otherwise.\n"
            "\n"
            "Examples:\n"
            "  ranklog plot loss\n"
            "  ranklog plot loss --log --ranks 0-3 --steps 100: /scratch/me/ranklog\n"
            "  ranklog plot train/loss -k val/loss --ranks 0 --smooth 0.9\n");
        return [options] { return plot(*options); };
      }};
}

}  // namespace ranklog::cli
