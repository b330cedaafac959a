/* NVIDIA's management library as far as ranklog calls it, with two GPUs that are not there. The second has no
 * fan and fails where a GPU with trouble does. RANKLOG_FAKE_NVML: "hang" makes every question to a GPU hang,
 * "none" finds no driver, "lost" makes each fail; a number is a process that uses the second GPU. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSuccess = 0, kNotSupported = 3, kInsufficientSize = 7, kDriverNotLoaded = 9, kGpuIsLost = 15 };

typedef struct {
  unsigned gpu, memory;
} Utilization;
typedef struct {
  unsigned long long total, free, used;
} Memory;
typedef struct {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
} Process;

static int gpus[2];
static unsigned fan_calls;

static int wish(const char* word) {
  const char* text = getenv("RANKLOG_FAKE_NVML");
  return text != NULL && strcmp(text, word) == 0;
}
static int trouble(void) {
  while (wish("hang")) pause();
  return wish("lost") ? kGpuIsLost : kSuccess;
}
static int is_first(void* gpu) {
  return gpu == &gpus[0];
}

unsigned fake_nvml_fan_calls(void) {
  return fan_calls;
}

int nvmlInit_v2(void) {
  return wish("none") ? kDriverNotLoaded : kSuccess;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
  *gpu = &gpus[index];
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* gpu, Utilization* out) {
  out->gpu = is_first(gpu) ? 97 : 12;
  out->memory = is_first(gpu) ? 41 : 3;
  return trouble();
}
int nvmlDeviceGetMemoryInfo(void* gpu, Memory* out) {
  (void)gpu;
  out->total = 80ULL << 30;
  out->used = 20ULL << 30;
  out->free = out->total - out->used;
  return trouble();
}
int nvmlDeviceGetTemperature(void* gpu, int sensor, unsigned* out) {
  *out = is_first(gpu) ? 65 : 40;
  return sensor == 0 ? trouble() : kNotSupported;
}
int nvmlDeviceGetPowerUsage(void* gpu, unsigned* out) {
  (void)gpu;
  *out = 350500;
  return trouble();
}
int nvmlDeviceGetEnforcedPowerLimit(void* gpu, unsigned* out) {
  *out = 701000;
  return is_first(gpu) ? trouble() : kGpuIsLost;
}
int nvmlDeviceGetClockInfo(void* gpu, int clock, unsigned* out) {
  (void)gpu;
  *out = clock == 1 ? 1980 : clock == 2 ? 2619 : 0;
  return trouble();
}
int nvmlDeviceGetMemoryErrorCounter(void* gpu, int type, int counter, int location, unsigned long long* out) {
  (void)gpu;
  *out = type == 0 ? 5 : 1;
  return counter == 0 && location == 2 ? trouble() : kNotSupported;
}
int nvmlDeviceGetFanSpeed(void* gpu, unsigned* out) {
  *out = 30;
  if (is_first(gpu)) return trouble();
  ++fan_calls;
  return kNotSupported;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* gpu, unsigned* count, Process* out) {
  const char* text = getenv("RANKLOG_FAKE_NVML");
  const unsigned pid = text != NULL ? (unsigned)strtoul(text, NULL, 10) : 0;
  const unsigned others = 50; /* more than a caller expects */
  const unsigned room = *count;
  unsigned i;
  *count = is_first(gpu) || pid == 0 ? 0 : others + 1;
  if (*count == 0) return trouble();
  if (room < *count) return kInsufficientSize;
  for (i = 0; i < others; ++i) out[i].pid = 1000000 + i;
  out[others].pid = pid;
  return trouble();
}
