#pragma once
// A small disk in memory, mounted where only this process and its children see it.

#include <filesystem>
#include <string>

#include "temp_dir.hpp"

namespace ranklog::test {

class Tmpfs {
 public:
  explicit Tmpfs(int kibibytes);
  ~Tmpfs();
  Tmpfs(const Tmpfs&) = delete;
  Tmpfs& operator=(const Tmpfs&) = delete;

  [[nodiscard]] bool is_mounted() const noexcept { return mounted_; }  // else this process may not mount
  [[nodiscard]] const std::filesystem::path& path() const { return dir_.path(); }
  // Writes "ballast" until not a block is left.
  void fill() const;

 private:
  TempDir dir_;
  bool mounted_ = false;
};

}  // namespace ranklog::test
