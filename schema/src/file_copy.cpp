#include "ranklog/schema/file_copy.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "file.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw TargetError(ErrorCode::kIo, "cannot write '" + path.string() + "': " + errno_text(error));
}

void copy_bytes(const FileDescriptor& from, const fs::path& source, const FileDescriptor& to,
                const fs::path& target) {
  // In the kernel where it can (between some file systems it cannot, and says so at once).
  for (;;) {
    const ssize_t copied = ::copy_file_range(from.get(), nullptr, to.get(), nullptr, kBufferBytes, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0) break;
    if (copied == 0) break;
  }
  const auto buffer = std::make_unique<char[]>(kBufferBytes);
  while (const ssize_t got = read_some(from, buffer.get(), kBufferBytes, source)) {
    write_all(to, {buffer.get(), static_cast<std::size_t>(got)}, target);
  }
}

}  // namespace

CopyMethod clone_file(const fs::path& source, const fs::path& target) {
  const FileDescriptor from = open_for_reading(source);
  const FileDescriptor to(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!to.is_open() && errno == EEXIST) {
    throw Error(ErrorCode::kBusy, "'" + target.string() + "' exists already and is left as it is");
  }
  if (!to.is_open()) cannot_write(target, errno);
  try {
    auto method = CopyMethod::kReflink;
    if (::ioctl(to.get(), FICLONE, from.get()) != 0) {
      method = CopyMethod::kBytes;
      copy_bytes(from, source, to, target);
    }
    if (::fdatasync(to.get()) != 0) cannot_write(target, errno);
    return method;
  } catch (...) {
    ::unlink(target.c_str());
    throw;
  }
}

}  // namespace ranklog
