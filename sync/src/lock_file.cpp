#include "lock_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "ranklog/schema/error.hpp"

namespace ranklog::sync {
namespace {

std::string self_description() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return std::string("process ") + std::to_string(getpid()) + " on " + host.data();
}

std::string read_owner(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t got = pread(descriptor, text.data(), text.size(), 0);
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : "another process";
}

}  // namespace

LockFile::LockFile(const std::filesystem::path& path) {
  constexpr mode_t kMode = 0666;
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
  if (descriptor_ < 0)
    throw Error(ErrorCode::kIo, path.string() + " cannot be created: " + errno_text(errno));
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int failed = errno;
    if (failed != EWOULDBLOCK) {
      close(descriptor_);
      throw Error(ErrorCode::kIo, path.string() + " cannot be locked: " + errno_text(failed),
                  "keep the upload state on another file system with --state-dir");
    }
    const std::string owner = read_owner(descriptor_);
    close(descriptor_);
    throw Error(ErrorCode::kBusy,
                owner + " is already uploading this experiment (lock " + path.string() + ")",
                "wait for it or stop it");
  }
  const std::string text = self_description();
  // The owner's name is for people; the lock holds without it.
  if (ftruncate(descriptor_, 0) == 0) (void)!pwrite(descriptor_, text.data(), text.size(), 0);
}

LockFile::~LockFile() {
  close(descriptor_);
}

}  // namespace ranklog::sync
