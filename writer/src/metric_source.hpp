#pragma once
// Something that is measured now and then: one row of numbers a sample.

#include <optional>
#include <string>
#include <vector>

namespace ranklog::writer {

struct Metric {
  std::string key;  // W&B's name without its "system."
  double value = 0;
};

class MetricSource {
 public:
  MetricSource() = default;
  MetricSource(const MetricSource&) = delete;
  MetricSource& operator=(const MetricSource&) = delete;
  virtual ~MetricSource() = default;
  // Called by one thread. What cannot be measured now is left out. Empty if there will never be anything, and
  // no more samples need be asked for.
  [[nodiscard]] virtual std::optional<std::vector<Metric>> sample() = 0;
};

}  // namespace ranklog::writer
