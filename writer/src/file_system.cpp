#include "file_system.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>

#include "ranklog/schema/error.hpp"

namespace ranklog::writer {
namespace {

struct FileSystem {
  unsigned long type;  // statfs(2)
  std::string_view name;
};

// Where fallocate(2) gives blocks that a store to a mapping can never lack: anywhere else a full disk would
// end the process with SIGBUS (btrfs and ZFS copy on write, network file systems reserve nothing).
constexpr unsigned long kXfs = 0x58465342;
constexpr FileSystem kReserving[] = {{EXT4_SUPER_MAGIC, "ext4"}, {kXfs, "xfs"}, {TMPFS_MAGIC, "tmpfs"}};

}  // namespace

TailChoice choose_tail_mode(const std::filesystem::path& folder, const std::optional<std::string>& forced) {
  if (forced == "append") return {TailMode::kAppend, "RANKLOG_TAIL=append"};
  if (forced == "mapped") return {TailMode::kMapped, "RANKLOG_TAIL=mapped"};
  if (forced) {
    throw Error(ErrorCode::kUsage, "RANKLOG_TAIL=" + *forced + " is not understood", "use mapped or append");
  }
  struct statfs facts = {};
  if (::statfs(folder.c_str(), &facts) != 0) {
    return {TailMode::kAppend, "the file system cannot be told: " + errno_text(errno)};
  }
  for (const FileSystem& known : kReserving) {
    if (static_cast<unsigned long>(facts.f_type) == known.type) {
      return {TailMode::kMapped, std::string(known.name) + ": space can be reserved and mapped"};
    }
  }
  return {TailMode::kAppend, "space cannot be reserved on this file system, as far as ranklog knows"};
}

}  // namespace ranklog::writer
