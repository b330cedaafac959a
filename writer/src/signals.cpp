#include "signals.hpp"

#include <cerrno>
#include <ctime>
#include <initializer_list>

namespace ranklog::writer {
namespace {

sigset_t file_size_signal() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

bool is_pending() noexcept {
  sigset_t pending;
  sigemptyset(&pending);
  return ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

SignalsBlocked::SignalsBlocked() noexcept {
  sigset_t set;
  sigfillset(&set);
  for (const int own_fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&set, own_fault);
  }
  ::pthread_sigmask(SIG_SETMASK, &set, &before_);
}

SignalsBlocked::~SignalsBlocked() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

FileSizeSignalBlocked::FileSizeSignalBlocked() noexcept {
  const sigset_t set = file_size_signal();
  pending_before_ = is_pending();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

FileSizeSignalBlocked::~FileSizeSignalBlocked() {
  if (!pending_before_ && is_pending()) {
    const sigset_t set = file_size_signal();
    const timespec at_once{0, 0};
    while (::sigtimedwait(&set, nullptr, &at_once) < 0 && errno == EINTR) continue;
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace ranklog::writer
