#include "cgroup_limits.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "proc_files.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return false;
}

// Of /proc/self/cgroup, whose lines are "id:controllers:path". v2's line has no controllers.
std::optional<std::string> group_path(std::string_view text, std::string_view controller) {
  for (const auto line : split_words(text)) {  // a path with blanks is not found
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : has_word(controllers, controller))
      return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

struct Hierarchy {
  fs::path top, own;  // folders; `own` is in `top` or is it
};

// A container sees its own part of the hierarchy mounted, while the path may be told from the true top.
std::optional<Hierarchy> find_hierarchy(const fs::path& root, const std::vector<MountPoint>& mounts,
                                        const std::string& groups, const std::string& controller) {
  const auto path = group_path(groups, controller);
  if (!path) return std::nullopt;
  for (const auto& mount : mounts) {
    const bool fits = controller.empty()
                          ? mount.type == "cgroup2"
                          : mount.type == "cgroup" && has_word(mount.super_options, controller);
    if (!fits) continue;
    const fs::path top = root / fs::path(mount.path).relative_path();
    const fs::path inside =
        mount.root == "/" ? fs::path(*path) : fs::path(*path).lexically_relative(mount.root);
    if (inside.empty() || *inside.begin() == "..") return Hierarchy{top, top};
    return Hierarchy{top, (top / inside.relative_path()).lexically_normal()};
  }
  return std::nullopt;
}

// The group itself and those around it, innermost first.
std::vector<fs::path> enclosing_groups(const Hierarchy& hierarchy) {
  std::vector<fs::path> groups;
  for (fs::path at = hierarchy.own;; at = at.parent_path()) {
    groups.push_back(at);
    if (at == hierarchy.top || at == at.parent_path()) return groups;
  }
}

void tighten_memory(CgroupLimits& limits, const fs::path& group, const char* limit_file,
                    const char* usage_file) {
  const auto bytes = parse_unsigned(read_small_file(group / limit_file)).value_or(0);
  if (bytes == 0 || (limits.memory_bytes != 0 && limits.memory_bytes <= bytes)) return;
  limits.memory_bytes = bytes;
  limits.memory_usage_file = group / usage_file;
}

void tighten_cpus(CgroupLimits& limits, std::optional<std::uint64_t> quota,
                  std::optional<std::uint64_t> period) {
  if (quota.value_or(0) == 0 || period.value_or(0) == 0) return;
  const double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
  limits.cpus = limits.cpus == 0 ? cpus : std::min(limits.cpus, cpus);
}

void read_v2(CgroupLimits& limits, const Hierarchy& hierarchy) {
  for (const auto& group : enclosing_groups(hierarchy)) {
    tighten_memory(limits, group, "memory.max", "memory.current");
    const std::string text = read_small_file(group / "cpu.max");  // "quota period", the quota may be "max"
    const auto words = split_words(text);
    if (words.size() == 2) tighten_cpus(limits, parse_unsigned(words[0]), parse_unsigned(words[1]));
  }
}

void read_v1_memory(CgroupLimits& limits, const Hierarchy& hierarchy) {
  for (const auto& group : enclosing_groups(hierarchy))
    tighten_memory(limits, group, "memory.limit_in_bytes", "memory.usage_in_bytes");
}

void read_v1_cpus(CgroupLimits& limits, const Hierarchy& hierarchy) {
  for (const auto& group : enclosing_groups(hierarchy)) {  // a quota of -1 is none
    tighten_cpus(limits, parse_unsigned(read_small_file(group / "cpu.cfs_quota_us")),
                 parse_unsigned(read_small_file(group / "cpu.cfs_period_us")));
  }
}

}  // namespace

CgroupLimits read_cgroup_limits(const fs::path& root, std::uint64_t memory_total) {
  const auto groups = read_small_file(root / "proc/self/cgroup");
  const auto mounts = parse_mountinfo(read_small_file(root / "proc/self/mountinfo"));
  CgroupLimits limits;
  if (const auto unified = find_hierarchy(root, mounts, groups, "")) read_v2(limits, *unified);
  if (const auto memory = find_hierarchy(root, mounts, groups, "memory")) read_v1_memory(limits, *memory);
  if (const auto cpu = find_hierarchy(root, mounts, groups, "cpu")) read_v1_cpus(limits, *cpu);
  if (memory_total != 0 && limits.memory_bytes >= memory_total) {
    limits.memory_bytes = 0;
    limits.memory_usage_file.clear();
  }
  return limits;
}

}  // namespace ranklog::writer
