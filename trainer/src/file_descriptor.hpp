#pragma once
// A file descriptor that closes itself.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace ranklog {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  // For files that were written: an error found by close() counts. False and errno on failure.
  [[nodiscard]] bool close() noexcept { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_ = -1;
};

// Of a socket that is connecting.
inline bool wait_until_writable(int fd, std::chrono::milliseconds limit) {
  pollfd entry{fd, POLLOUT, 0};
  return ::poll(&entry, 1, static_cast<int>(limit.count())) == 1;
}

inline int pending_error(int fd) {
  int problem = 0;
  socklen_t size = sizeof problem;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 ? problem : errno;
}

}  // namespace ranklog
