#pragma once
// Tells whether this process is a forked child of the one that made the guard. fork() copies memory, locks in
// whatever state they are, and descriptors, but not the background thread: a child must touch none of them.

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace ranklog::writer {

class ForkGuard {
 public:
  ForkGuard() : generation_((watch(), generation().load(std::memory_order_relaxed))) {}
  [[nodiscard]] bool in_child() const noexcept {
    return generation_ != generation().load(std::memory_order_relaxed);
  }

 private:
  static std::atomic<unsigned>& generation() noexcept {
    static constinit std::atomic<unsigned> forks{0};
    return forks;
  }
  static void watch() {
    static std::once_flag once;
    std::call_once(once, [] {
      pthread_atfork(nullptr, nullptr, [] { generation().fetch_add(1, std::memory_order_relaxed); });
    });
  }

  unsigned generation_;
};

}  // namespace ranklog::writer
