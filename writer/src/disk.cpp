#include "disk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "process_facts.hpp"
#include "ranklog/schema/disk_space.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog::writer {

namespace fs = std::filesystem;

Descriptor::~Descriptor() {
  close();
}

void Descriptor::close() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void throw_io(std::string_view what, const fs::path& path, int error_number) {
  throw Error(ErrorCode::kIo, "cannot " + std::string(what) + " " + path.string() + ": " +
                                  disk_error_text(error_number, path));
}

void throw_folder(std::string_view what, const fs::path& folder, int error_number) {
  throw Error(ErrorCode::kIo,
              "cannot " + std::string(what) + " the folder " + folder.string() + ": " +
                  disk_error_text(error_number, folder),
              "make it (or the folder above it) writable, or set RANKLOG_DIR (--log-dir) to one that is");
}

int write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int sync_folder(const fs::path& folder) noexcept {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return errno;
  // Some file systems (FUSE among them) cannot sync a folder and need not.
  if (::fsync(fd.get()) == 0 || errno == EINVAL || errno == ENOSYS) return 0;
  return errno;
}

void create_folders(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
    missing.push_back(at);
    if (at == at.parent_path()) break;
  }
  fs::create_directories(folder, error);
  if (error) throw_folder("create", folder, error.value());
  for (const auto& made : missing) sync_folder(made.parent_path());
}

void publish_file(const fs::path& path, std::string_view content) {
  const fs::path temporary =
      path.parent_path() / ("." + path.filename().string() + "." + random_hex(4) + ".tmp");
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) throw_io("create", temporary, errno);
  int error = write_all(file.get(), content);
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    throw_io("write", path, error);
  }
  sync_folder(path.parent_path());
}

}  // namespace ranklog::writer
