#pragma once
// Files and folders as the writer needs them: descriptors that close themselves, errors that name the path.

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace ranklog::writer {

class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

// Throws Error (kIo): "cannot <what> <path>: <reason of error_number>".
[[noreturn]] void throw_io(std::string_view what, const std::filesystem::path& path, int error_number);

// The same of a folder under the log folder, with the remedy.
[[noreturn]] void throw_folder(std::string_view what, const std::filesystem::path& folder, int error_number);

// All bytes, however many calls it takes; 0 or an errno.
[[nodiscard]] int write_all(int fd, std::string_view bytes) noexcept;

// Makes the entries of a folder durable; 0 or an errno.
int sync_folder(const std::filesystem::path& folder) noexcept;

// Creates the folder and those above it, and makes them durable. Throws Error (kIo) naming the folder.
void create_folders(const std::filesystem::path& folder);

// Publishes a small file: temporary name, write, sync, rename, sync of the folder. Throws Error (kIo).
void publish_file(const std::filesystem::path& path, std::string_view content);

}  // namespace ranklog::writer
