#pragma once
// What a container or a job scheduler allows this process: the limits of its control group (v2 and v1), which
// stand for the machine's own CPUs and memory in every percentage.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace ranklog::writer {

struct CgroupLimits {
  double cpus = 0;                 // 0: no limit
  std::uint64_t memory_bytes = 0;  // 0: no limit
  // Where the bytes in use stand, those of all processes under the same limit.
  std::filesystem::path memory_usage_file;
};

// Of this process, from <root>/proc/self and the control groups that are mounted under `root`. Of nested
// groups the tightest limit counts: a scheduler limits the job, and leaves the group of a task without one.
// A limit above `memory_total` limits nothing.
[[nodiscard]] CgroupLimits read_cgroup_limits(const std::filesystem::path& root, std::uint64_t memory_total);

}  // namespace ranklog::writer
