#pragma once
// What Linux tells in /proc, as pure functions of a file's text. A text that is cut off or strange gives what
// it holds, or nothing.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranklog::writer {

// A small file, whole; empty if it cannot be read. Opens no descriptor that a child would inherit.
[[nodiscard]] std::string read_small_file(const std::filesystem::path& path);

// The words of a line, or of a text.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);
// The whole text, blanks around it left out, as a number without a sign.
[[nodiscard]] std::optional<std::uint64_t> parse_unsigned(std::string_view text);

struct ProcessStat {              // /proc/<pid>/stat
  std::uint64_t cpu_ticks = 0;    // user and system time of all threads so far
  std::uint64_t start_ticks = 0;  // since boot
  std::uint64_t threads = 0;
  std::uint64_t rss_pages = 0;
};
[[nodiscard]] std::optional<ProcessStat> parse_process_stat(std::string_view text);

struct MemoryInfo {  // /proc/meminfo, in bytes
  std::uint64_t total = 0, available = 0;
};
[[nodiscard]] std::optional<MemoryInfo> parse_meminfo(std::string_view text);

struct NetworkBytes {
  std::uint64_t received = 0, sent = 0;
};
// /proc/net/dev: all interfaces but the loopback.
[[nodiscard]] std::optional<NetworkBytes> parse_net_dev(std::string_view text);

struct DiskBytes {  // a line of /proc/diskstats
  std::string device;
  std::uint64_t read = 0, written = 0;
};
// `number` is the device's "major:minor". Empty if it is no block device.
[[nodiscard]] std::optional<DiskBytes> find_disk(std::string_view diskstats, std::string_view number);

struct MountPoint {           // a line of /proc/self/mountinfo, escapes resolved
  std::string device_number;  // "major:minor"
  std::string root;           // of the mount, within its file system
  std::string path;
  std::string type;
  std::string super_options;
};
[[nodiscard]] std::vector<MountPoint> parse_mountinfo(std::string_view text);
// The mount that holds an absolute path. Empty if none does.
[[nodiscard]] std::optional<MountPoint> find_mount(const std::vector<MountPoint>& mounts,
                                                   const std::filesystem::path& path);

// /proc/cpuinfo: distinct cores. Where it does not tell them apart, its processors.
[[nodiscard]] int count_physical_cores(std::string_view cpuinfo);
[[nodiscard]] int count_processors(std::string_view cpuinfo);
// "Cpus_allowed_list" of /proc/<pid>/status, such as 0-3,8. 0 if it is not there.
[[nodiscard]] int count_allowed_cpus(std::string_view status);

}  // namespace ranklog::writer
