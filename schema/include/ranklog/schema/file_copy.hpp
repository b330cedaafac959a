#pragma once
// Copies of files that share their blocks where the file system can do that.

#include <cstdint>
#include <filesystem>

#include "ranklog/schema/error.hpp"

namespace ranklog {

// The place where the copy was to go refused: others that go there will fare no better.
class TargetError : public Error {
 public:
  using Error::Error;
};

enum class CopyMethod : std::uint8_t {
  kReflink,  // shares the blocks until one of the two changes (btrfs, xfs)
  kBytes,
};

// Makes `target`, exclusively, with what `source` holds now, and durable; it is gone again if that fails. A
// file that grows meanwhile is copied as far as it went in between. Throws Error: kNotFound, kIo (naming the
// file; TargetError if it is the target), kBusy if `target` exists.
CopyMethod clone_file(const std::filesystem::path& source, const std::filesystem::path& target);

// What was created, renamed or removed in it survives a power loss. Throws Error (kIo); file systems that
// cannot do it are passed.
void sync_folder(const std::filesystem::path& folder);

}  // namespace ranklog
