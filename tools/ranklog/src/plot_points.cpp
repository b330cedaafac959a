#include "ranklog/cli/plot_points.hpp"

#include <algorithm>
#include <cmath>

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

}  // namespace ranklog::cli
