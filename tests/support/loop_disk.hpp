#pragma once
// An ext4 of its own in a file, mounted where only this process and its children see it.

#include <chrono>
#include <string>

#include "temp_dir.hpp"

namespace ranklog::test {

class LoopDisk {
 public:
  explicit LoopDisk(int mebibytes);
  ~LoopDisk();
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  // Empty if it is mounted; else what is missing (root, loop devices, mkfs.ext4), for a test to skip with.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }
  [[nodiscard]] std::filesystem::path path() const { return dir_ / "disk"; }
  // The whole file system stops for so long: who writes to it hangs. A process of its own ends that, even if
  // this one is killed meanwhile. False if that is not allowed.
  [[nodiscard]] bool freeze(std::chrono::milliseconds time);

 private:
  TempDir dir_;
  std::string missing_;
  bool mounted_ = false;
};

}  // namespace ranklog::test
