#pragma once
// CPU, memory, disk, network and this process, from /proc and statvfs. Opens no socket and runs no program.
//
// Keys and units are W&B's (its client's core/internal/monitor/system.go); MB and GB are 2^20 and 2^30 bytes:
//   cpu                        % of the CPUs that this process may use, since the last sample
//   proc.cpu.threads           threads of this process
//   proc.memory.rssMB          resident memory of this process
//   proc.memory.percent        the same, in % of the memory that this process may use
//   memory_percent             memory in use, by anybody, in % of the same
//   proc.memory.availableMB    memory that is left to anybody
//   network.sent, .recv        bytes since the first sample, all interfaces but the loopback
//   disk.<mount>.usagePercent, .usageGB      of the file system that holds the log
//   disk.<device>.in, .out     MB read and written since the first sample, of its device
// The CPUs are the physical cores, or fewer where a control group or the affinity says so; the memory is the
// machine's or the control group's. Unlike W&B's, `cpu` is no average over the life of the process.

#include <filesystem>

#include "cgroup_limits.hpp"
#include "metric_source.hpp"
#include "proc_files.hpp"

namespace ranklog::writer {

enum class HostScope : std::uint8_t {
  kProcess,  // what differs from rank to rank: cpu and proc.* but what is available
  kNode,     // also what all ranks of a node share
};

class HostMetrics : public MetricSource {
 public:
  // `root` stands before /proc and /sys; `log_folder` says whose disk is meant.
  HostMetrics(HostScope scope, std::filesystem::path log_folder, std::filesystem::path root = "/");
  [[nodiscard]] std::optional<std::vector<Metric>> sample() override;

 private:
  void add_process(std::vector<Metric>& out);
  void add_memory(std::vector<Metric>& out) const;
  void add_network(std::vector<Metric>& out);
  void add_disk_usage(std::vector<Metric>& out) const;
  void add_disk_traffic(std::vector<Metric>& out);
  [[nodiscard]] double uptime_s() const;
  [[nodiscard]] std::uint64_t memory_limit() const;

  const HostScope scope_;
  const std::filesystem::path folder_, root_;
  MemoryInfo memory_;  // at the start
  CgroupLimits limits_;
  double cpus_ = 1;
  std::optional<MountPoint> mount_;
  double last_uptime_s_ = 0, last_cpu_s_ = 0;  // of the process, at the last sample
  std::optional<NetworkBytes> first_network_;
  std::optional<DiskBytes> first_disk_;
};

}  // namespace ranklog::writer
