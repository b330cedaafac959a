#pragma once
// Whether SQLite can lock a file where it lies. Asked once, before the file is written: NFS without its lock
// daemon refuses, or never answers; Lustre mounted without -o flock refuses.

#include <chrono>
#include <filesystem>
#include <string>

namespace ranklog {

struct LockAnswer {
  bool work = false;
  std::string reason;  // why not, for a person
};

// Takes and gives back SQLite's exclusive lock on a file that nobody uses yet. A call that does not return
// keeps a thread of its own and a descriptor, for as long as it hangs; this function returns after `limit`.
// Throws Error (kIo) if the file cannot be used at all.
[[nodiscard]] LockAnswer probe_locks(const std::filesystem::path& path, std::chrono::milliseconds limit);

}  // namespace ranklog
