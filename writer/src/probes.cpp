#include "probes.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include "environment.hpp"
#include "ranklog/schema/error.hpp"
#include "standard_output.hpp"

namespace ranklog::writer {
namespace {

// A terminal that is stopped holds up the lines behind it for as long.
constexpr std::chrono::seconds kConsolePatience{2};

bool console_is_wanted(std::optional<bool> given, const EnvLookup& environment) {
  const auto word = lookup(environment, "RANKLOG_CONSOLE");
  if (given || !word) return given.value_or(true);
  if (is_true(*word)) return true;
  for (const char* no : {"0", "off", "no", "false"}) {
    if (*word == no) return false;
  }
  throw Error(ErrorCode::kUsage, "RANKLOG_CONSOLE is \"" + *word + "\"", "set it to on or off");
}

void log_metrics(Recorder& recorder, std::int64_t time_ns, std::span<const Metric> row) {
  std::vector<Field> fields;
  fields.reserve(row.size());
  for (const auto& metric : row) fields.push_back({metric.key, metric.value});
  recorder.log(Stream::kSystem, 0, time_ns, fields);
}

void log_line(Recorder& recorder, const ConsoleLine& line) {
  const Field fields[] = {{"text", std::string_view(line.text)}, {"stderr", line.from_stderr}};
  recorder.log(Stream::kConsole, line.number, line.time_ns, fields);
}

void tell_once(const ProbeSettings& settings, const char* trouble) {
  static std::atomic<bool> told{false};
  if (!settings.silent && !told.exchange(true)) print_line(trouble);
}

}  // namespace

ProbeSettings resolve_probes(const Settings& settings, const EnvLookup& environment) {
  ProbeSettings probes;
  probes.console = console_is_wanted(settings.options.console, environment);
  probes.system_metrics_interval =
      system_metrics_interval(settings.options.system_metrics_interval, environment);
  probes.nvml = nvml_library(environment);
  probes.node_wide = settings.place.local_rank == 0;
  probes.silent = is_true(lookup(environment, "WANDB_SILENT").value_or(""));
  return probes;
}

Probes::Probes(const ProbeSettings& settings, const OpenLog& log) {
  try {
    if (settings.system_metrics_interval.count() > 0) start_metrics(settings, log);
    if (settings.console) start_console(log);
  } catch (const std::exception& error) {
    tell_once(settings, error.what());
  }
}

void Probes::start_metrics(const ProbeSettings& settings, const OpenLog& log) {
  SystemMetricsSettings metrics;
  metrics.interval = settings.system_metrics_interval;
  metrics.node_wide = settings.node_wide;
  metrics.log_folder = log.folder;
  metrics.nvml = settings.nvml;
  metrics_.emplace(metrics, [core = log.core](std::int64_t time_ns, std::span<const Metric> row) {
    log_metrics(core->recorder, time_ns, row);
  });
}

void Probes::start_console(const OpenLog& log) {
  ConsoleCaptureSettings console;
  console.relay = find_console_relay();
  console.rank_file = std::filesystem::absolute(log.path);
  console.rank = log.identity.rank;
  console.launch_token = log.identity.launch_token;
  console_.emplace(console, [core = log.core](const ConsoleLine& line) { log_line(core->recorder, line); });
}

void Probes::flush(SteadyTime deadline) noexcept {
  if (console_) console_->flush(std::min(deadline, std::chrono::steady_clock::now() + kConsolePatience));
}

void Probes::stop(SteadyTime deadline) noexcept {
  if (metrics_) metrics_->stop();
  if (console_) console_->stop(std::min(deadline, std::chrono::steady_clock::now() + kConsolePatience));
}

}  // namespace ranklog::writer
