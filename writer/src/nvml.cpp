#include "nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

namespace ranklog::writer {
namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;
constexpr int kFunctionNotFound = 13;

constexpr int kTemperatureOfGpu = 0;
constexpr int kVolatileErrors = 0;
constexpr int kDeviceMemory = 2;

// nvmlProcessInfo_t of the calls whose names end in _v2 and _v3.
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_memory;
  unsigned int gpu_instance, compute_instance;
};

// Numbers of the calls, for NvmlDevice::unsupported_.
enum Call : unsigned {
  kUtilization,
  kMemory,
  kTemperature,
  kPower,
  kPowerLimit,
  kClock,  // and the two after it
  kErrors = kClock + 3,
  kFan = kErrors + 2,
  kComputing,
  kDrawing,
};

using Handle = void*;
template <class... Arguments>
using Function = int (*)(Arguments...);

}  // namespace

struct NvmlDevice::Library {
  Function<> init = nullptr;
  Function<unsigned*> count = nullptr;
  Function<unsigned, Handle*> handle = nullptr;
  Function<Handle, NvmlUtilization*> utilization = nullptr;
  Function<Handle, NvmlMemory*> memory = nullptr;
  Function<Handle, int, unsigned*> temperature = nullptr;
  Function<Handle, unsigned*> power = nullptr;
  Function<Handle, unsigned*> power_limit = nullptr;
  Function<Handle, int, unsigned*> clock = nullptr;
  Function<Handle, int, int, int, unsigned long long*> errors = nullptr;
  Function<Handle, unsigned*> fan = nullptr;
  Function<Handle, unsigned*, ProcessInfo*> computing = nullptr, drawing = nullptr;

  static std::shared_ptr<const Library> load(const std::string& name);
};

namespace {

// The first of several names of one function: drivers of ten years are in use.
template <class Pointer>
void find(void* library, Pointer& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    function = reinterpret_cast<Pointer>(::dlsym(library, name));
    if (function != nullptr) return;
  }
}

}  // namespace

std::shared_ptr<const NvmlDevice::Library> NvmlDevice::Library::load(const std::string& name) {
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto calls = std::make_shared<Library>();
  find(library, calls->init, {"nvmlInit_v2", "nvmlInit"});
  find(library, calls->count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  find(library, calls->handle, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  find(library, calls->utilization, {"nvmlDeviceGetUtilizationRates"});
  find(library, calls->memory, {"nvmlDeviceGetMemoryInfo"});
  find(library, calls->temperature, {"nvmlDeviceGetTemperature"});
  find(library, calls->power, {"nvmlDeviceGetPowerUsage"});
  find(library, calls->power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  find(library, calls->clock, {"nvmlDeviceGetClockInfo"});
  find(library, calls->errors, {"nvmlDeviceGetMemoryErrorCounter"});
  find(library, calls->fan, {"nvmlDeviceGetFanSpeed"});
  find(library, calls->computing,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  find(library, calls->drawing,
       {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"});
  const bool usable = calls->init != nullptr && calls->count != nullptr && calls->handle != nullptr;
  return usable && calls->init() == kSuccess ? calls : nullptr;
}

NvmlDevice::NvmlDevice(std::shared_ptr<const Library> library, void* handle)
    : library_(std::move(library)), handle_(handle) {}

template <class Result, class Function, class... Arguments>
std::optional<Result> NvmlDevice::ask(unsigned call, Function function, Arguments... arguments) {
  const std::uint32_t bit = 1U << call;
  if (function == nullptr || (unsupported_ & bit) != 0) return std::nullopt;
  Result result{};
  const int status = function(handle_, arguments..., &result);
  if (status == kNotSupported || status == kFunctionNotFound) unsupported_ |= bit;
  return status == kSuccess ? std::optional(result) : std::nullopt;
}

std::optional<NvmlUtilization> NvmlDevice::utilization() {
  return ask<NvmlUtilization>(kUtilization, library_->utilization);
}
std::optional<NvmlMemory> NvmlDevice::memory() {
  return ask<NvmlMemory>(kMemory, library_->memory);
}
std::optional<unsigned> NvmlDevice::temperature_celsius() {
  return ask<unsigned>(kTemperature, library_->temperature, kTemperatureOfGpu);
}
std::optional<unsigned> NvmlDevice::power_milliwatts() {
  return ask<unsigned>(kPower, library_->power);
}
std::optional<unsigned> NvmlDevice::enforced_power_limit_milliwatts() {
  return ask<unsigned>(kPowerLimit, library_->power_limit);
}
std::optional<unsigned> NvmlDevice::clock_mhz(NvmlClock clock) {
  const int number = static_cast<int>(clock);
  return ask<unsigned>(kClock + static_cast<unsigned>(number), library_->clock, number);
}
std::optional<unsigned long long> NvmlDevice::memory_errors(NvmlErrors errors) {
  const int type = static_cast<int>(errors);
  return ask<unsigned long long>(kErrors + static_cast<unsigned>(type), library_->errors, type,
                                 kVolatileErrors, kDeviceMemory);
}
std::optional<unsigned> NvmlDevice::fan_percent() {
  return ask<unsigned>(kFan, library_->fan);
}

bool NvmlDevice::is_used_by(unsigned pid) {
  return lists(kComputing, pid) || lists(kDrawing, pid);
}

bool NvmlDevice::lists(unsigned call, unsigned pid) {
  const auto function = call == kComputing ? library_->computing : library_->drawing;
  if (function == nullptr) return false;
  std::vector<ProcessInfo> processes(32);
  for (int tries = 0; tries < 4; ++tries) {
    auto count = static_cast<unsigned>(processes.size());
    const int status = function(handle_, &count, processes.data());
    if (status == kInsufficientSize) {
      processes.resize(std::size_t{count} * 2 + 8);  // more may start until the next call
      continue;
    }
    if (status != kSuccess) return false;
    processes.resize(std::min<std::size_t>(count, processes.size()));
    return std::any_of(processes.begin(), processes.end(), [&](const auto& one) { return one.pid == pid; });
  }
  return false;
}

std::vector<NvmlDevice> load_nvml(const std::string& name) {
  std::vector<NvmlDevice> devices;
  const auto library = NvmlDevice::Library::load(name);
  unsigned count = 0;
  if (!library || library->count(&count) != kSuccess) return devices;
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    // A GPU that cannot be had keeps its number: those after it are not renamed.
    if (library->handle(i, &handle) != kSuccess) handle = nullptr;
    devices.emplace_back(library, handle);
  }
  return devices;
}

}  // namespace ranklog::writer
