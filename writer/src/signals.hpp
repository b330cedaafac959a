#pragma once
// Signals that a library must not let happen to its caller.

#include <csignal>

namespace ranklog::writer {

// While it lives, this thread blocks all signals that are not its own faults; threads that it creates go on
// blocking them. So the program's handlers run on its own threads, and SIGXFSZ, which a write beyond
// RLIMIT_FSIZE sends to the thread that writes, stays pending there: the write fails with EFBIG.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// For writes on the caller's thread: while it lives SIGXFSZ waits, and what has come of it is gone at the
// end. Two or three system calls.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() noexcept;
  ~FileSizeSignalBlocked();
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t before_;
  bool pending_before_ = false;
};

}  // namespace ranklog::writer
