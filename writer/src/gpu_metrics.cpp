#include "gpu_metrics.hpp"

#include <utility>

namespace ranklog::writer {
namespace {

class Collector {
 public:
  Collector(std::vector<Metric>& out, std::string prefix) : out_(out), prefix_(std::move(prefix)) {}
  template <class Number>
  void add(const char* name, Number value) {
    out_.push_back({prefix_ + name, static_cast<double>(value)});
  }
  template <class Number>
  void add(const char* name, const std::optional<Number>& value) {
    if (value) add(name, *value);
  }

 private:
  std::vector<Metric>& out_;
  std::string prefix_;
};

void add_power(Collector& out, NvmlDevice& device) {
  constexpr double kMilli = 1000;
  const auto power = device.power_milliwatts();
  if (!power) return;
  out.add("powerWatts", *power / kMilli);
  const auto limit = device.enforced_power_limit_milliwatts();
  if (limit.value_or(0) == 0) return;
  out.add("enforcedPowerLimitWatts", *limit / kMilli);
  out.add("powerPercent", static_cast<double>(*power) / *limit * 100);
}

// What a GPU and a process's own GPU have in common.
void add_load(Collector& out, NvmlDevice& device) {
  if (const auto utilization = device.utilization()) {
    out.add("gpu", utilization->gpu);
    out.add("memory", utilization->memory);
  }
  if (const auto memory = device.memory(); memory && memory->total != 0) {
    out.add("memoryAllocated", static_cast<double>(memory->used) / static_cast<double>(memory->total) * 100);
    out.add("memoryAllocatedBytes", memory->used);
  }
  out.add("temp", device.temperature_celsius());
  add_power(out, device);
}

void add_hardware(Collector& out, NvmlDevice& device) {
  out.add("smClock", device.clock_mhz(NvmlClock::kSm));
  out.add("memoryClock", device.clock_mhz(NvmlClock::kMemory));
  out.add("correctedMemoryErrors", device.memory_errors(NvmlErrors::kCorrected));
  out.add("uncorrectedMemoryErrors", device.memory_errors(NvmlErrors::kUncorrected));
  out.add("fanSpeed", device.fan_percent());
}

// The same numbers under gpu.process.i.
void repeat_for_process(std::vector<Metric>& out, const std::vector<Metric>& load, const std::string& from,
                        const std::string& to) {
  for (const auto& metric : load) out.push_back({to + metric.key.substr(from.size()), metric.value});
}

}  // namespace

GpuMetrics::GpuMetrics(GpuScope scope, std::string library, unsigned pid)
    : scope_(scope), library_(std::move(library)), pid_(pid) {}

std::optional<std::vector<Metric>> GpuMetrics::sample() {
  if (!std::exchange(loaded_, true)) devices_ = load_nvml(library_);
  if (devices_.empty()) return std::nullopt;
  std::vector<Metric> out;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    auto& device = devices_[i];
    const bool is_ours = device.is_used_by(pid_);
    if (scope_ == GpuScope::kProcess && !is_ours) continue;
    const std::string prefix = "gpu." + std::to_string(i) + ".";
    std::vector<Metric> load;
    Collector for_load(load, prefix);
    add_load(for_load, device);
    if (scope_ == GpuScope::kNode) {
      out.insert(out.end(), load.begin(), load.end());
      Collector for_all(out, prefix);
      add_hardware(for_all, device);
    }
    if (is_ours) repeat_for_process(out, load, prefix, "gpu.process." + std::to_string(i) + ".");
  }
  return out;
}

}  // namespace ranklog::writer
