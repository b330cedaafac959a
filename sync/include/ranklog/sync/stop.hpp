#pragma once
// A request to stop, raised by a signal and looked at between and during requests.

#include <atomic>

namespace ranklog::sync {

// Once: finish what must not be cut off, save, stop. Twice: stop at once (the state file is sound at any
// moment). raise() is async-signal-safe.
class StopFlag {
 public:
  void raise(int signal_number) noexcept {
    signal_ = signal_number;
    ++count_;
  }
  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] int signal_number() const noexcept { return signal_; }  // of the last one; 0: none

 private:
  static_assert(std::atomic<int>::is_always_lock_free);
  std::atomic<int> count_{0};
  std::atomic<int> signal_{0};
};

// Throws Error (kInterrupted) after a request to stop. For loops that may take long.
void throw_if_stopped(const StopFlag& stop);

}  // namespace ranklog::sync
