#pragma once
// A folder of a test's own, removed with everything in it at the end of the test.

#include <filesystem>
#include <string>
#include <string_view>

namespace ranklog::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::filesystem::path& name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, std::string_view bytes);
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace ranklog::test
