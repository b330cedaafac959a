#pragma once
// Time and chance, injected so that waiting can be tested without waiting.

#include <chrono>
#include <cstdint>

namespace ranklog::sync {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual std::chrono::steady_clock::time_point now() = 0;
  [[nodiscard]] virtual std::int64_t unix_ns() = 0;
  virtual void sleep(std::chrono::milliseconds duration) = 0;
  [[nodiscard]] virtual double random() = 0;  // uniform in [0, 1)
};

// Safe to use from several threads.
[[nodiscard]] Clock& system_clock();

}  // namespace ranklog::sync
