#include "file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/file_copy.hpp"

namespace ranklog {
namespace {

[[noreturn]] void throw_errno(const char* what, const std::filesystem::path& path, int error_number) {
  const ErrorCode code =
      error_number == ENOENT || error_number == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
  throw Error(code, std::string("cannot ") + what + " '" + path.string() + "': " + errno_text(error_number));
}

int open_read_only(const std::filesystem::path& path) {
  int fd = -1;
  do {
    // O_NONBLOCK: opening a pipe would wait for who writes it.
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

bool knows_no_links(int error) {
  return error == EPERM || error == ENOSYS || error == EOPNOTSUPP || error == EMLINK;
}

// Takes the name, and then replaces what has it. 0, or the errno.
int take_name(const std::filesystem::path& from, const std::filesystem::path& to) {
  const FileDescriptor place(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!place.is_open()) return errno;
  if (::rename(from.c_str(), to.c_str()) == 0) return 0;
  const int error = errno;
  ::unlink(to.c_str());
  return error;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

FileDescriptor open_for_reading(const std::filesystem::path& path) {
  const int fd = open_read_only(path);
  if (fd < 0) throw_errno("open", path, errno);
  return FileDescriptor(fd);
}

FileDescriptor open_if_exists(const std::filesystem::path& path) {
  const int fd = open_read_only(path);
  if (fd < 0 && errno != ENOENT) throw_errno("open", path, errno);
  return FileDescriptor(fd);
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path place = folder.empty() ? "." : folder;
  const FileDescriptor file(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.is_open()) throw_errno("open", place, errno);
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != ENOSYS) throw_errno("write", place, errno);
}

int publish_exclusively(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return 0;
  const int error = errno;
  // NFS: the answer was lost, and the call was sent again (link(2), "BUGS").
  struct stat facts = {};
  if (error == EEXIST && ::stat(from.c_str(), &facts) == 0 && facts.st_nlink > 1) return 0;
  return knows_no_links(error) ? take_name(from, to) : error;
}

ssize_t read_some(const FileDescriptor& file, void* buffer, std::size_t bytes,
                  const std::filesystem::path& path) {
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, bytes);
    if (got >= 0) return got;
    if (errno != EINTR) throw_errno("read", path, errno);
  }
}

void write_all(const FileDescriptor& file, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno("write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string read_up_to(const FileDescriptor& file, std::size_t limit, const std::filesystem::path& path) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw_errno("read", path, errno);
  std::string bytes;
  std::size_t used = 0;
  // One byte more than the size, so that a file that does not grow meanwhile is read in two calls.
  std::size_t want = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0)) + 1;
  while (used < limit) {
    want = std::min(want, limit - used);
    bytes.resize(used + want);
    const ssize_t got = read_some(file, bytes.data() + used, want, path);
    used += static_cast<std::size_t>(got);
    if (got == 0) break;
    want = std::max<std::size_t>(bytes.size() - used, std::size_t{1} << 16);
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace ranklog
