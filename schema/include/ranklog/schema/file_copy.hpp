#pragma once
// Copies of files that share their blocks where the file system can do that.

#include <cstdint>
#include <filesystem>

namespace ranklog {

enum class CopyMethod : std::uint8_t {
  kReflink,  // shares the blocks until one of the two changes (btrfs, xfs)
  kBytes,
};

// Makes `target`, exclusively, with what `source` holds now, and durable; it is gone again if that fails. A
// file that grows meanwhile is copied as far as it went in between. Throws Error: kNotFound, kIo (naming the
// file), kBusy if `target` exists.
CopyMethod clone_file(const std::filesystem::path& source, const std::filesystem::path& target);

}  // namespace ranklog
