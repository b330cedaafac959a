#pragma once
// File descriptors and whole files, for this library's own use.

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace ranklog {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

// Throws Error (kNotFound, kIo) naming the file.
[[nodiscard]] FileDescriptor open_for_reading(const std::filesystem::path& path);
// Not open if the file does not exist; throws Error (kIo) for anything else.
[[nodiscard]] FileDescriptor open_if_exists(const std::filesystem::path& path);

// At least one byte, or 0 at the end of the file. `path` is for the error's text.
[[nodiscard]] ssize_t read_some(const FileDescriptor& file, void* buffer, std::size_t bytes,
                                const std::filesystem::path& path);
// Gives a file a second name, or where there are no hard links another one: never one that is taken. 0, or
// the errno: EEXIST if it is.
[[nodiscard]] int publish_exclusively(const std::filesystem::path& from, const std::filesystem::path& to);

void write_all(const FileDescriptor& file, std::string_view bytes, const std::filesystem::path& path);
// From the current position to the end, or `limit` bytes if there are more.
[[nodiscard]] std::string read_up_to(const FileDescriptor& file, std::size_t limit,
                                     const std::filesystem::path& path);

}  // namespace ranklog
