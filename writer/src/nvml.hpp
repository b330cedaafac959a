#pragma once
// NVIDIA's management library, as far as it is needed here, loaded at run time: a machine without it is no
// error. Types and numbers are those of NVIDIA's public NVML API reference.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ranklog::writer {

struct NvmlMemory {
  unsigned long long total = 0, free = 0, used = 0;  // bytes
};
struct NvmlUtilization {
  unsigned int gpu = 0, memory = 0;  // % of the last sample period
};
enum class NvmlClock : int { kGraphics = 0, kSm = 1, kMemory = 2 };
enum class NvmlErrors : int { kCorrected = 0, kUncorrected = 1 };

// One GPU. Every call gives nothing if it fails; one that the GPU does not support is not tried again.
// Calls may take milliseconds, and may hang if the GPU or its driver does.
class NvmlDevice {
 public:
  struct Library;
  NvmlDevice(std::shared_ptr<const Library> library, void* handle);

  [[nodiscard]] std::optional<NvmlUtilization> utilization();
  [[nodiscard]] std::optional<NvmlMemory> memory();
  [[nodiscard]] std::optional<unsigned> temperature_celsius();
  [[nodiscard]] std::optional<unsigned> power_milliwatts();
  [[nodiscard]] std::optional<unsigned> enforced_power_limit_milliwatts();
  [[nodiscard]] std::optional<unsigned> clock_mhz(NvmlClock clock);
  // In device memory, since the driver was loaded.
  [[nodiscard]] std::optional<unsigned long long> memory_errors(NvmlErrors errors);
  [[nodiscard]] std::optional<unsigned> fan_percent();
  // Whether a process computes or draws on it; by its number outside of containers.
  [[nodiscard]] bool is_used_by(unsigned pid);

 private:
  template <class Result, class Function, class... Arguments>
  std::optional<Result> ask(unsigned call, Function function, Arguments... arguments);
  [[nodiscard]] bool lists(unsigned call, unsigned pid);

  std::shared_ptr<const Library> library_;
  void* handle_;
  std::uint32_t unsupported_ = 0;  // a bit a call
};

// The GPUs in NVML's order. `library` is a name or path for dlopen(). Empty if there is none, or no GPU. The
// library stays loaded: its own threads may outlive any use of it.
[[nodiscard]] std::vector<NvmlDevice> load_nvml(const std::string& library);

}  // namespace ranklog::writer
