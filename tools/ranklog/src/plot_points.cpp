#include "ranklog/cli/plot_points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace ranklog::cli {
namespace {

bool is_gap(const std::vector<PlotSample>& samples, std::size_t i) {
  constexpr double kMuchLonger = 10;
  const auto way_to = [&](std::size_t index) { return samples[index].step - samples[index - 1].step; };
  double usual = 0;
  if (i >= 2) usual = std::max(usual, way_to(i - 1));
  if (i + 1 < samples.size()) usual = std::max(usual, way_to(i + 1));
  return usual > 0 && way_to(i) > kMuchLonger * usual;
}

class Smoother {
 public:
  explicit Smoother(double weight) : weight_(weight) {}
  double next(double value) {
    if (weight_ <= 0) return value;
    average_ = weight_ * average_ + (1 - weight_) * value;
    known_ = weight_ * known_ + (1 - weight_);
    return average_ / known_;
  }

 private:
  double weight_;
  double average_ = 0;
  double known_ = 0;  // how much of the average is data and not its start at 0
};

// True if the value can be drawn; counts it otherwise.
bool can_draw(const PlotSample& sample, Scale scale, NotDrawn& not_drawn) {
  if (!sample.number) {
    ++not_drawn.not_number;
  } else if (std::isnan(sample.value)) {
    ++not_drawn.nan;
  } else if (std::isinf(sample.value)) {
    ++not_drawn.infinite;
  } else if (scale == Scale::kLog && sample.value <= 0) {
    ++not_drawn.not_positive;
  } else {
    return true;
  }
  return false;
}

// Adds the first, lowest, highest and last of the points, each once.
void keep_extremes(std::span<const ChartPoint> piece, std::vector<ChartPoint>& kept) {
  const auto by_y = [](const ChartPoint& a, const ChartPoint& b) { return a.y < b.y; };
  const auto [low, high] = std::minmax_element(piece.begin(), piece.end(), by_y);
  std::array<std::size_t, 4> indices{0, static_cast<std::size_t>(low - piece.begin()),
                                     static_cast<std::size_t>(high - piece.begin()), piece.size() - 1};
  std::sort(indices.begin(), indices.end());
  const auto end = std::unique(indices.begin(), indices.end());
  for (auto index = indices.begin(); index != end; ++index) {
    kept.push_back(piece[*index]);
    if (*index > 0) kept.back().joined = true;
  }
}

}  // namespace

std::vector<ChartPoint> chart_points(const std::vector<PlotSample>& samples, Scale y_scale, double smooth,
                                     NotDrawn& not_drawn) {
  std::vector<ChartPoint> points;
  Smoother smoother(smooth);
  bool broken = false;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i > 0 && is_gap(samples, i)) {
      broken = true;
      ++not_drawn.gaps;
    }
    if (!can_draw(samples[i], y_scale, not_drawn)) {
      broken = true;
      continue;
    }
    points.push_back({samples[i].step, smoother.next(samples[i].value), !broken});
    broken = false;
  }
  return points;
}

std::vector<ChartPoint> outline(std::vector<ChartPoint> points) {
  if (points.size() <= kOutlineStretches) return points;
  const double low = points.front().x;
  const double width = (points.back().x / kOutlineStretches) - (low / kOutlineStretches);
  const auto stretch_of = [&](const ChartPoint& point) { return std::floor((point.x - low) / width); };
  std::vector<ChartPoint> kept;
  double stretch = -1;
  std::size_t pieces = 0;
  for (std::size_t begin = 0, end = 0; begin < points.size(); begin = end) {
    pieces = stretch_of(points[begin]) == stretch ? pieces + 1 : 1;
    stretch = stretch_of(points[begin]);
    for (end = begin + 1; end < points.size() && stretch_of(points[end]) == stretch; ++end) {
      if (!points[end].joined && pieces < kOutlinePieces) break;
    }
    keep_extremes(std::span(points).subspan(begin, end - begin), kept);
  }
  return kept;
}

}  // namespace ranklog::cli
