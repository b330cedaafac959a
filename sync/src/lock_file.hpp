#pragma once
// "Somebody is at work here": a lock that dies with its owner.

#include <filesystem>

namespace ranklog::sync {

class LockFile {
 public:
  // Throws Error (kBusy) naming the owner's host and process, or kIo.
  explicit LockFile(const std::filesystem::path& path);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace ranklog::sync
