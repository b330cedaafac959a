#pragma once
// /proc/self/mountinfo, as proc(5) describes it.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ranklog::writer {

struct Mount {
  std::uint64_t id = 0;
  std::string mount_point;
  std::string type;     // "ext4", "fuse.sshfs"
  std::string source;   // "/dev/sda1", "server:/export"
  std::string options;  // of the file system: "rw,upperdir=/up"
};

// Lines that are none are left out.
[[nodiscard]] std::vector<Mount> parse_mount_table(std::string_view text);

// The mount that holds an absolute path without symbolic links: the one with that id (statx's stx_mnt_id) if
// there is one; else the longest mount point above the path, of several mounts on one place the last.
[[nodiscard]] const Mount* find_mount(std::span<const Mount> mounts, const std::filesystem::path& path,
                                      std::optional<std::uint64_t> id = {});

// The value of "name=..." in a mount's options; empty if it is not there.
[[nodiscard]] std::string mount_option(const Mount& mount, std::string_view name);

}  // namespace ranklog::writer
