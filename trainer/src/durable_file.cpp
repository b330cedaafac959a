#include "durable_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "ranklog/schema/file_copy.hpp"

namespace ranklog {
namespace {

[[noreturn]] void fail(const char* what, const std::filesystem::path& path) {
  const int problem = errno;
  throw Error(ErrorCode::kIo,
              std::string("cannot ") + what + " '" + path.string() + "': " + errno_text(problem));
}

}  // namespace

DurableFile::DurableFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(path_.string() + ".tmp") {
  fd_ = Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd_) fail("create", temporary_);
}

DurableFile::~DurableFile() {
  if (committed_) return;
  std::error_code ignored;  // a leftover is removed at the next start
  std::filesystem::remove(temporary_, ignored);
}

void DurableFile::write(const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd_.get(), next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", temporary_);
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void DurableFile::commit() {
  if (::fsync(fd_.get()) != 0) fail("sync", temporary_);
  if (!fd_.close()) fail("close", temporary_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("publish", path_);
  committed_ = true;
  sync_folder(path_.parent_path());
}

}  // namespace ranklog
