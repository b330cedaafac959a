#pragma once
// What the file system under a folder lets the tail and the database do.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "mount_table.hpp"
#include "ranklog/schema/durability.hpp"

namespace ranklog::writer {

enum class TailMode : std::uint8_t {
  kMapped,  // into a shared mapping of space reserved beforehand: no system call a row
  kAppend,  // one small write a row
};
[[nodiscard]] std::string_view to_string(TailMode mode) noexcept;

struct FileSystemFacts {
  std::string name;      // "ext4", "overlay on xfs", "fuse.sshfs", "0x1234" where nothing else is known
  bool network = false;  // its files may be on another machine, or nothing is known of it
  TailMode tail = TailMode::kAppend;
  JournalMode journal = JournalMode::kPersist;
  std::string reason;  // for a person
};

// What can be seen of a folder.
struct FileSystemSample {
  unsigned long magic = 0;     // statfs(2)'s f_type
  std::optional<Mount> mount;  // empty where /proc is not there
  // The file system that an overlay writes to, where that can be told.
  std::optional<unsigned long> upper_magic;
  std::string upper_type;
};

// Pure. In doubt what is right everywhere: small writes, no shared memory, little done to the folder.
[[nodiscard]] FileSystemFacts describe_file_system(const FileSystemSample& sample);
// By its name as a mount table has it: RANKLOG_FILE_SYSTEM.
[[nodiscard]] FileSystemFacts describe_file_system(std::string_view name);

// Of a folder that exists.
[[nodiscard]] FileSystemFacts detect_file_system(const std::filesystem::path& folder);

}  // namespace ranklog::writer
