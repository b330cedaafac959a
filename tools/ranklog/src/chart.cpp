#include "ranklog/cli/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ranklog/cli/canvas.hpp"
#include "ranklog/cli/terminal.hpp"
#include "ranklog/cli/text.hpp"

namespace ranklog::cli {
namespace {

// Colours that stand out on dark and on light ground.
constexpr std::array kColors{36, 33, 35, 32, 34, 31, 96, 95};

struct Frame {
  const char *vertical, *tick, *corner, *horizontal, *up;
};
constexpr Frame kUnicodeFrame{"│", "┤", "└", "─", "┬"};
constexpr Frame kAsciiFrame{"|", "+", "+", "-", "+"};

int color_of(int layer) {
  return kColors[static_cast<std::size_t>(layer) % kColors.size()];
}

Axis axis_over(const std::vector<ChartSeries>& series, double ChartPoint::* member, Scale scale) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const ChartSeries& one : series) {
    for (const ChartPoint& point : one.points) {
      low = std::min(low, point.*member);
      high = std::max(high, point.*member);
    }
  }
  return {low, high, scale};
}

class Chart {
 public:
  Chart(const std::vector<ChartSeries>& series, const ChartOptions& options)
      : series_(series),
        options_(options),
        frame_(options.ascii ? kAsciiFrame : kUnicodeFrame),
        glyphs_(choose_glyphs()),
        x_(axis_over(series, &ChartPoint::x, Scale::kLinear)),
        y_(axis_over(series, &ChartPoint::y, options.y_scale)),
        legend_(legend_lines()),
        plot_rows_(std::max(4, options.height - 3 - static_cast<int>(legend_.size()))),
        y_ticks_(y_.ticks(std::max(2, plot_rows_ / 3))),
        margin_(label_width() + 1),
        canvas_(options.width - margin_ - 1, plot_rows_) {}

  std::string render() {
    for (std::size_t i = 0; i < series_.size(); ++i) draw(series_[i].points, static_cast<int>(i));
    const auto width = static_cast<std::size_t>(options_.width);
    std::string out = colored(options_.color, 1, cut_to(printable(options_.title), width, options_.ascii));
    out += '\n' + plot_lines() + x_axis_lines();
    for (const std::string& line : legend_) out += line + '\n';
    return out;
  }

 private:
  [[nodiscard]] Glyphs choose_glyphs() const {
    const bool lines = series_.size() <= 1 || options_.color;
    if (options_.ascii) return lines && series_.size() <= 1 ? Glyphs::kAsciiLine : Glyphs::kAsciiMarkers;
    return lines ? Glyphs::kBraille : Glyphs::kMarkers;
  }

  [[nodiscard]] int label_width() const {
    std::size_t widest = 0;
    for (const Tick& tick : y_ticks_) widest = std::max(widest, tick.label.size());
    return static_cast<int>(widest);
  }

  void draw(const std::vector<ChartPoint>& points, int layer) {
    int last_x = 0;
    int last_y = 0;
    bool first = true;
    for (const ChartPoint& point : points) {
      const int x = static_cast<int>(std::lround(x_.fraction(point.x) * (canvas_.dot_columns() - 1)));
      const int y = static_cast<int>(std::lround((1 - y_.fraction(point.y)) * (canvas_.dot_rows() - 1)));
      if (first || !point.joined) {
        canvas_.dot(x, y, layer);
      } else {
        canvas_.line(last_x, last_y, x, y, layer);
      }
      first = false;
      last_x = x;
      last_y = y;
    }
  }

  [[nodiscard]] std::string plot_lines() const {
    std::vector<std::string> labels(static_cast<std::size_t>(plot_rows_));
    for (const Tick& tick : y_ticks_) {
      const double dot = (1 - y_.fraction(tick.value)) * (canvas_.dot_rows() - 1);
      const auto row = static_cast<std::size_t>(std::lround(dot)) / Canvas::kDotsDown;
      if (labels[row].empty()) labels[row] = tick.label;
    }
    std::string out;
    for (int row = 0; row < plot_rows_; ++row) {
      const std::string& label = labels[static_cast<std::size_t>(row)];
      out += pad_to(label, static_cast<std::size_t>(margin_ - 1), Align::kRight) + ' ';
      out += label.empty() ? frame_.vertical : frame_.tick;
      out += canvas_line(row) + '\n';
    }
    return out;
  }

  [[nodiscard]] std::string canvas_line(int row) const {
    int used = canvas_.columns();
    while (used > 0 && canvas_.cell(used - 1, row).dots == 0) --used;
    std::string out;
    int painted = -1;  // the layer whose colour is on
    for (int column = 0; column < used; ++column) {
      const CanvasCell& cell = canvas_.cell(column, row);
      if (options_.color && cell.dots != 0 && cell.layer != painted) {
        out += "\x1b[" + std::to_string(color_of(cell.layer)) + 'm';
        painted = cell.layer;
      }
      out += glyph_of(cell, glyphs_);
    }
    return painted >= 0 ? out + "\x1b[0m" : out;
  }

  [[nodiscard]] std::string x_axis_lines() const {
    const auto columns = static_cast<std::size_t>(canvas_.columns());
    std::vector<bool> marked(columns, false);
    std::string labels(static_cast<std::size_t>(margin_) + 1, ' ');
    const std::size_t origin = labels.size();
    const std::size_t end = static_cast<std::size_t>(options_.width);
    const std::size_t name_at = end - std::min(end, options_.x_label.size());
    for (const Tick& tick : x_.ticks(std::max(2, canvas_.columns() / 12))) {
      const auto dot =
          static_cast<std::size_t>(std::lround(x_.fraction(tick.value) * (canvas_.dot_columns() - 1)));
      const std::size_t column = std::min(columns - 1, dot / Canvas::kDotsAcross);
      marked[column] = true;
      const std::size_t half = tick.label.size() / 2;
      const std::size_t at = origin + column > half ? origin + column - half : 0;
      const bool free = at == 0 || at >= labels.size() + 1 || labels.find_last_not_of(' ') == labels.npos;
      if (!free || at + tick.label.size() + 1 > name_at) continue;
      if (at < labels.size()) labels.resize(at);
      labels += std::string(at - labels.size(), ' ') + tick.label;
    }
    if (labels.size() < name_at) labels += std::string(name_at - labels.size(), ' ') + options_.x_label;
    std::string line = std::string(static_cast<std::size_t>(margin_), ' ') + frame_.corner;
    for (std::size_t i = 0; i < columns; ++i) line += marked[i] ? frame_.up : frame_.horizontal;
    return line + '\n' + labels + '\n';
  }

  [[nodiscard]] std::vector<std::string> legend_lines() const {
    if (series_.size() <= 1) return {};
    std::vector<std::string> lines(1, " ");
    std::size_t used = 1;
    for (std::size_t i = 0; i < series_.size(); ++i) {
      const auto layer = static_cast<int>(i);
      const std::string glyph = legend_glyph(layer, glyphs_);
      const std::string label = printable(series_[i].label);
      const std::size_t width = 3 + display_width(glyph) + display_width(label);
      if (used + width > static_cast<std::size_t>(options_.width) && used > 1) {
        lines.emplace_back(" ");
        used = 1;
      }
      lines.back() += "  " + colored(options_.color, color_of(layer), glyph) + ' ' + label;
      used += width;
    }
    return lines;
  }

  const std::vector<ChartSeries>& series_;
  const ChartOptions& options_;
  const Frame& frame_;
  Glyphs glyphs_;
  Axis x_, y_;
  std::vector<std::string> legend_;
  int plot_rows_;
  std::vector<Tick> y_ticks_;
  int margin_;  // columns left of the axis
  Canvas canvas_;
};

}  // namespace

std::string render_chart(const std::vector<ChartSeries>& series, const ChartOptions& options) {
  return Chart(series, options).render();
}

}  // namespace ranklog::cli
