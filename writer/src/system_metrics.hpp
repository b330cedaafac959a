#pragma once
// System metrics in the background: one thread for the host, one for the GPUs if there are any, so that a GPU
// that hangs costs its own metrics and nothing else.
//
// Who measures what: every rank measures its own process, and local rank 0 also what all ranks of its node
// share. So each is recorded once, whichever ranks are uploaded as runs later.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "metric_source.hpp"
#include "ranklog/writer/launch.hpp"

namespace ranklog::writer {

// Takes one row; called by the threads of the samplers. Must not throw.
using MetricSink = std::function<void(std::int64_t time_ns, std::span<const Metric> row)>;
using MakeMetricSource = std::function<std::unique_ptr<MetricSource>()>;

// Samples one source in a thread of its own: at once, then every `interval`.
class Sampler {
 public:
  // The thread also makes the source, and holds all that it needs. Throws std::system_error.
  Sampler(std::chrono::milliseconds interval, MakeMetricSource make_source, MetricSink sink);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Returns within a moment; a thread that hangs in a driver or a file system is left behind.
  void stop() noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

struct SystemMetricsSettings {
  std::chrono::milliseconds interval{15000};
  bool node_wide = true;             // this process is local rank 0
  std::filesystem::path log_folder;  // whose disk is measured
  std::string nvml;                  // name or path of NVIDIA's library; empty: no GPUs
};

class SystemMetrics {
 public:
  SystemMetrics(const SystemMetricsSettings& settings, const MetricSink& sink);
  void stop() noexcept;

 private:
  std::unique_ptr<Sampler> host_, gpus_;
};

// `given`, else RANKLOG_SYSTEM_METRICS (seconds, or "off"), else 15 s; 0: none; no less than 100 ms. Throws
// Error (kUsage) for another word.
[[nodiscard]] std::chrono::milliseconds system_metrics_interval(
    std::optional<std::chrono::milliseconds> given, const EnvLookup& environment);
// RANKLOG_NVML, else the name under which drivers install it. Empty if that is "off".
[[nodiscard]] std::string nvml_library(const EnvLookup& environment);

}  // namespace ranklog::writer
