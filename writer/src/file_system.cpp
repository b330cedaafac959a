#include "file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "ranklog/schema/error.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

enum class Kind : std::uint8_t {
  // fallocate(2) gives blocks that a store to a mapping can never lack.
  kReserving,
  // Local, but a store may need a new block (copy on write, or no fallocate): on a full disk a mapping would
  // end the process with SIGBUS.
  kLocal,
  // Its files may be on other machines: memory is not shared between them, and locks are a service that may
  // be missing or hang.
  kShared,
};

struct Known {
  std::string_view type;  // as a mount table names it
  unsigned long magic;    // statfs(2); linux/magic.h and the file systems' own sources
  Kind kind;
};

// The magic of ext2, ext3 and ext4 is one, and so is that of all FUSE file systems and virtiofs: the first
// entry says what to think where the mount table cannot be read.
constexpr auto kKnown = std::to_array<Known>({
    {"ext4", 0xEF53, Kind::kReserving},      {"ext3", 0xEF53, Kind::kLocal},
    {"ext2", 0xEF53, Kind::kLocal},          {"xfs", 0x58465342, Kind::kReserving},
    {"tmpfs", 0x01021994, Kind::kReserving}, {"btrfs", 0x9123683E, Kind::kLocal},
    {"zfs", 0x2FC12FC1, Kind::kLocal},       {"bcachefs", 0xCA451A4E, Kind::kLocal},
    {"f2fs", 0xF2F52010, Kind::kLocal},      {"jfs", 0x3153464A, Kind::kLocal},
    {"reiserfs", 0x52654973, Kind::kLocal},  {"nilfs2", 0x3434, Kind::kLocal},
    {"ramfs", 0x858458F6, Kind::kLocal},     {"overlay", 0x794C7630, Kind::kLocal},
    {"fuse", 0x65735546, Kind::kShared},     {"fuseblk", 0x65735546, Kind::kShared},
    {"virtiofs", 0x65735546, Kind::kShared}, {"9p", 0x01021997, Kind::kShared},
    {"nfs", 0x6969, Kind::kShared},          {"nfs4", 0x6969, Kind::kShared},
    {"lustre", 0x0BD00BD0, Kind::kShared},   {"gpfs", 0x47504653, Kind::kShared},
    {"beegfs", 0x19830326, Kind::kShared},   {"wekafs", 0, Kind::kShared},
    {"ceph", 0x00C36400, Kind::kShared},     {"cifs", 0xFF534D42, Kind::kShared},
    {"smb3", 0xFE534D42, Kind::kShared},     {"smbfs", 0x517B, Kind::kShared},
    {"afs", 0x5346414F, Kind::kShared},      {"ocfs2", 0x7461636F, Kind::kShared},
    {"gfs2", 0x01161970, Kind::kShared},     {"pvfs2", 0x20030528, Kind::kShared},
    {"panfs", 0xAAD7AAEA, Kind::kShared},    {"vxfs", 0xA501FCF5, Kind::kShared},
    {"ecryptfs", 0xF15F, Kind::kShared},  // lies on any other
});

bool is_fuse(std::string_view type) {
  return type == "fuse" || type == "fuseblk" || type.starts_with("fuse.");
}

const Known* find(std::string_view type) {
  for (const Known& known : kKnown) {
    if (known.type == type || (known.type == "fuse" && is_fuse(type))) return &known;
  }
  return nullptr;
}

const Known* find(unsigned long magic) {
  for (const Known& known : kKnown) {
    if (known.magic != 0 && known.magic == (magic & 0xFFFFFFFFUL)) return &known;
  }
  return nullptr;
}

FileSystemFacts facts_of(std::string name, Kind kind) {
  FileSystemFacts facts;
  switch (kind) {
    case Kind::kReserving:
      facts.tail = TailMode::kMapped;
      facts.journal = JournalMode::kWal;
      facts.reason = "local, and space can be reserved and mapped";
      break;
    case Kind::kLocal:
      facts.journal = JournalMode::kWal;
      facts.reason = "local, but space cannot be reserved for a mapping";
      break;
    case Kind::kShared:
      facts.network = true;
      facts.reason = is_fuse(name) ? "what a FUSE file system does with mappings and locks cannot be told"
                                   : "its files may be shared between machines, which shared memory is not";
      break;
  }
  facts.name = std::move(name);
  return facts;
}

FileSystemFacts unknown(std::string name) {
  FileSystemFacts facts = facts_of(std::move(name), Kind::kShared);
  facts.reason = "nothing is known of this file system";
  return facts;
}

std::string hexadecimal(unsigned long magic) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%lx", magic);
  return text.data();
}

// New files are in the upper layer, and so are their blocks, mappings and locks.
FileSystemFacts describe_overlay(const FileSystemSample& sample) {
  const Known* upper = find(sample.upper_type);
  if (upper == nullptr && sample.upper_magic) upper = find(*sample.upper_magic);
  if (upper == nullptr) {
    FileSystemFacts facts = facts_of("overlay", Kind::kLocal);
    facts.reason = "what lies beneath the overlay cannot be told";
    return facts;
  }
  const std::string type = sample.upper_type.empty() ? std::string(upper->type) : sample.upper_type;
  return facts_of("overlay on " + type, upper->kind);
}

std::string read_mount_table() {
  std::ifstream file("/proc/self/mountinfo");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<std::uint64_t> mount_id(const fs::path& path) {
#ifdef STATX_MNT_ID
  struct statx facts = {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &facts) == 0 && (facts.stx_mask & STATX_MNT_ID) != 0) {
    return facts.stx_mnt_id;
  }
#else
  (void)path;
#endif
  return std::nullopt;
}

// The upper folder's name is of the place where the overlay was mounted: inside a container it is nothing, or
// something else. Only a file system of the same size is taken for it, since an overlay passes that on.
void look_beneath(FileSystemSample& sample, const struct statfs& overlay, const std::vector<Mount>& mounts) {
  const fs::path folder = mount_option(*sample.mount, "upperdir");
  struct statfs upper = {};
  if (!folder.is_absolute() || ::statfs(folder.c_str(), &upper) != 0) return;
  if (upper.f_blocks != overlay.f_blocks || upper.f_bsize != overlay.f_bsize ||
      upper.f_files != overlay.f_files) {
    return;
  }
  sample.upper_magic = static_cast<unsigned long>(upper.f_type);
  if (const Mount* mount = find_mount(mounts, folder, mount_id(folder))) sample.upper_type = mount->type;
}

}  // namespace

std::string_view to_string(TailMode mode) noexcept {
  return mode == TailMode::kMapped ? "mapped" : "append";
}

FileSystemFacts describe_file_system(const FileSystemSample& sample) {
  const std::string type = sample.mount ? sample.mount->type : std::string();
  const Known* by_type = find(type);
  const Known* by_magic = find(sample.magic);
  if (by_type == nullptr && by_magic == nullptr)
    return unknown(type.empty() ? hexadecimal(sample.magic) : type);
  // Where the two differ, the mount table is of another moment.
  const bool differ = by_type == nullptr || (by_magic != nullptr && by_magic->magic != by_type->magic);
  const Known& known = differ ? *by_magic : *by_type;
  if (known.type == "overlay") return describe_overlay(sample);
  return facts_of(differ ? std::string(known.type) : type, known.kind);
}

FileSystemFacts describe_file_system(std::string_view name) {
  FileSystemSample sample;
  sample.mount.emplace().type = name;
  return describe_file_system(sample);
}

FileSystemFacts detect_file_system(const fs::path& folder) {
  struct statfs facts = {};
  if (::statfs(folder.c_str(), &facts) != 0) {
    const int error = errno;
    FileSystemFacts result = unknown("unknown");
    result.reason = "the file system cannot be told: " + errno_text(error);
    return result;
  }
  FileSystemSample sample;
  sample.magic = static_cast<unsigned long>(facts.f_type);
  const auto mounts = parse_mount_table(read_mount_table());
  std::error_code error;
  const fs::path place = fs::canonical(folder, error);
  const Mount* mount = error ? nullptr : find_mount(mounts, place, mount_id(folder));
  if (mount != nullptr) {
    sample.mount = *mount;
    if (mount->type == "overlay") look_beneath(sample, facts, mounts);
  }
  return describe_file_system(sample);
}

}  // namespace ranklog::writer
