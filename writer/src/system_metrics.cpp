#include "system_metrics.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "environment.hpp"
#include "gpu_metrics.hpp"
#include "host_metrics.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/time.hpp"

namespace ranklog::writer {
namespace {

constexpr std::chrono::milliseconds kDefaultInterval{15000};
constexpr std::chrono::milliseconds kLeastInterval{100};
// How long stop() waits for a sample under way: many times what one takes.
constexpr std::chrono::milliseconds kStopPatience{200};

// Signals are for the program's own threads.
void block_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

bool is_off(std::string_view word) {
  return word == "off" || word == "false" || word == "no";
}

std::chrono::milliseconds parse_interval(const std::string& text) {
  if (is_off(text)) return std::chrono::milliseconds(0);
  constexpr double kLongest = 1e6;  // seconds
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds >= 0 && seconds <= kLongest)) {
    throw Error(ErrorCode::kUsage, "RANKLOG_SYSTEM_METRICS is \"" + text + "\"",
                "set it to the seconds between two samples, or to off");
  }
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

}  // namespace

// What the thread and its owner share; the thread may outlive the owner.
struct Sampler::State {
  std::chrono::milliseconds interval;
  MakeMetricSource make_source;
  MetricSink sink;

  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;     // guarded by mutex
  bool stopped = false;  // guarded by mutex
  std::thread thread;    // the owner's

  void run() noexcept;
  void sample_until_stopped();
  bool wait_until(std::chrono::steady_clock::time_point deadline);
};

void Sampler::State::run() noexcept {
  block_signals();
  try {
    sample_until_stopped();
  } catch (...) {  // out of memory, or a source that fails: no more samples
  }
  const std::lock_guard lock(mutex);
  stopped = true;
  changed.notify_all();
}

void Sampler::State::sample_until_stopped() {
  const auto source = make_source();
  auto next = std::chrono::steady_clock::now();
  do {
    const auto time_ns = unix_time_ns();
    const auto row = source->sample();
    if (!row) return;
    // A sample that hung until after stop() has nowhere to go.
    if (wait_until(std::chrono::steady_clock::now())) return;
    if (!row->empty()) sink(time_ns, *row);
    next = std::max(next + interval, std::chrono::steady_clock::now());
  } while (!wait_until(next));
}

bool Sampler::State::wait_until(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex);
  return changed.wait_until(lock, deadline, [&] { return stop; });
}

Sampler::Sampler(std::chrono::milliseconds interval, MakeMetricSource make_source, MetricSink sink)
    : state_(std::make_shared<State>()) {
  state_->interval = interval;
  state_->make_source = std::move(make_source);
  state_->sink = std::move(sink);
  state_->thread = std::thread([state = state_] { state->run(); });
}

Sampler::~Sampler() {
  stop();
}

void Sampler::stop() noexcept {
  if (!state_->thread.joinable()) return;
  bool stopped = false;
  {
    std::unique_lock lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
    stopped = state_->changed.wait_for(lock, kStopPatience, [&] { return state_->stopped; });
  }
  if (stopped) {
    state_->thread.join();
  } else {
    state_->thread.detach();
  }
}

SystemMetrics::SystemMetrics(const SystemMetricsSettings& settings, const MetricSink& sink) {
  const auto make_host = [scope = settings.node_wide ? HostScope::kNode : HostScope::kProcess,
                          folder = settings.log_folder] {
    return std::make_unique<HostMetrics>(scope, folder);
  };
  host_ = std::make_unique<Sampler>(settings.interval, make_host, sink);
  if (settings.nvml.empty()) return;
  const auto make_gpus = [scope = settings.node_wide ? GpuScope::kNode : GpuScope::kProcess,
                          library = settings.nvml] {
    return std::make_unique<GpuMetrics>(scope, library, static_cast<unsigned>(::getpid()));
  };
  gpus_ = std::make_unique<Sampler>(settings.interval, make_gpus, sink);
}

void SystemMetrics::stop() noexcept {
  host_->stop();
  if (gpus_) gpus_->stop();
}

std::chrono::milliseconds system_metrics_interval(std::optional<std::chrono::milliseconds> given,
                                                  const EnvLookup& environment) {
  const auto text = lookup(environment, "RANKLOG_SYSTEM_METRICS");
  const auto interval = given ? *given : text ? parse_interval(*text) : kDefaultInterval;
  if (interval <= std::chrono::milliseconds(0)) return std::chrono::milliseconds(0);
  return std::max(interval, kLeastInterval);
}

std::string nvml_library(const EnvLookup& environment) {
  const auto name = lookup(environment, "RANKLOG_NVML").value_or("libnvidia-ml.so.1");
  return is_off(name) ? "" : name;
}

}  // namespace ranklog::writer
