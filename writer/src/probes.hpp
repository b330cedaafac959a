#pragma once
// What a log records by itself: system metrics and the console.

#include <memory>
#include <optional>

#include "console_capture.hpp"
#include "core.hpp"
#include "open_log.hpp"
#include "settings.hpp"
#include "steady_time.hpp"
#include "system_metrics.hpp"

namespace ranklog::writer {

struct ProbeSettings {
  bool console = true;
  std::chrono::milliseconds system_metrics_interval{0};  // 0: none
  std::string nvml;                                      // empty: no GPUs
  bool node_wide = true;                                 // of system metrics
  bool silent = false;
};
// Options over RANKLOG_CONSOLE, RANKLOG_SYSTEM_METRICS, RANKLOG_NVML. Throws Error (kUsage) for a word that
// is not understood.
[[nodiscard]] ProbeSettings resolve_probes(const Settings& settings, const EnvLookup& environment);

// A probe that cannot be started is no reason not to log: one line on stderr says why, once a process.
class Probes {
 public:
  Probes(const ProbeSettings& settings, const OpenLog& log);
  // Lines printed before are logged, unless that takes longer than a moment.
  void flush(SteadyTime deadline) noexcept;
  // Before the log is closed. Idempotent. A probe that hangs is waited for no longer than a moment.
  void stop(SteadyTime deadline) noexcept;

 private:
  void start_metrics(const ProbeSettings& settings, const OpenLog& log);
  void start_console(const OpenLog& log);

  std::optional<SystemMetrics> metrics_;
  std::optional<ConsoleCapture> console_;
};

}  // namespace ranklog::writer
