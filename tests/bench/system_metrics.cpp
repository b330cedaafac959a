// What system metrics cost: CPU time of one sample on this machine, and its share of a core at the default
// interval; against reading /proc/self/stat alone, the least that any sampler does.
//
//   bench_system_metrics [LIBRARY]     LIBRARY: NVML, or the tests' fake one

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "gpu_metrics.hpp"
#include "host_metrics.hpp"
#include "proc_files.hpp"

namespace {

using namespace ranklog::writer;

double thread_cpu_us() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

// Median of many.
template <class Call>
double cost_us(Call call) {
  std::vector<double> times(501);
  for (auto& time : times) {
    const double start = thread_cpu_us();
    call();
    time = thread_cpu_us() - start;
  }
  std::nth_element(times.begin(), times.begin() + 250, times.end());
  return times[250];
}

double sample_us(MetricSource& source) {
  return cost_us([&] { static_cast<void>(source.sample()); });
}

}  // namespace

int main(int argc, char** argv) {
  const auto here = std::filesystem::current_path();
  HostMetrics node(HostScope::kNode, here);
  HostMetrics process(HostScope::kProcess, here);
  const double node_us = sample_us(node);
  const double process_us = sample_us(process);
  const double floor_us =
      cost_us([] { static_cast<void>(parse_process_stat(read_small_file("/proc/self/stat"))); });
  constexpr double kIntervalUs = 15e6;
  std::printf("{\"node_sample_us\": %.1f, \"process_sample_us\": %.1f, \"floor_us\": %.1f, ", node_us,
              process_us, floor_us);
  if (argc > 1) {
    GpuMetrics gpus(GpuScope::kNode, argv[1], 1);
    static_cast<void>(gpus.sample());
    std::printf("\"gpu_sample_us\": %.1f, ", sample_us(gpus));
  }
  std::printf("\"node_share_of_a_core_at_15_s\": %.2e, \"process_share_of_a_core_at_15_s\": %.2e}\n",
              node_us / kIntervalUs, process_us / kIntervalUs);
}
