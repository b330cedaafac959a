#include "standard_output.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>

namespace ranklog::writer {
namespace {

using std::chrono::steady_clock;

bool is_writable(int fd, SteadyTime deadline) {
  pollfd wanted{fd, POLLOUT, 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000)));
    if (ready > 0) return (wanted.revents & POLLOUT) != 0;
    if (ready < 0 ? errno != EINTR : left <= 60'000) return false;
  }
}

}  // namespace

void print_line(std::string_view text) noexcept {
  try {
    const std::string line = "ranklog: " + std::string(text) + "\n";
    if (is_writable(STDERR_FILENO, steady_clock::now())) {
      [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    }
  } catch (...) {
    return;  // no memory for a line
  }
}

void flush_stdio(SteadyTime deadline) noexcept {
  for (std::FILE* stream : {stdout, stderr}) {
    if (!is_writable(::fileno(stream), deadline) || ::ftrylockfile(stream) != 0) continue;
    ::fflush_unlocked(stream);
    ::funlockfile(stream);
  }
}

}  // namespace ranklog::writer
