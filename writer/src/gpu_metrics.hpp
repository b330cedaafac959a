#pragma once
// NVIDIA GPUs. Keys and units are W&B's (its client's xpu/src/gpu_nvidia.rs), for GPU i in NVML's order:
//   gpu.i.gpu, .memory              % of time in which a kernel ran, or memory was read or written
//   gpu.i.memoryAllocated, .memoryAllocatedBytes    % and bytes
//   gpu.i.temp                      degrees Celsius
//   gpu.i.powerWatts, .enforcedPowerLimitWatts, .powerPercent
//   gpu.i.smClock, .memoryClock     MHz
//   gpu.i.correctedMemoryErrors, .uncorrectedMemoryErrors    since the driver was loaded
//   gpu.i.fanSpeed                  %
//   gpu.process.i.*                 those of them up to the power again, of the GPUs that this process uses

#include <string>
#include <vector>

#include "metric_source.hpp"
#include "nvml.hpp"

namespace ranklog::writer {

enum class GpuScope : std::uint8_t {
  kProcess,  // gpu.process.i.* only
  kNode,     // and all GPUs of the node
};

class GpuMetrics : public MetricSource {
 public:
  // `library`: NVML's name or path. It is loaded by the first sample.
  GpuMetrics(GpuScope scope, std::string library, unsigned pid);
  [[nodiscard]] std::optional<std::vector<Metric>> sample() override;

 private:
  const GpuScope scope_;
  const std::string library_;
  const unsigned pid_;
  bool loaded_ = false;
  std::vector<NvmlDevice> devices_;
};

}  // namespace ranklog::writer
