#pragma once
// The server's time: the machine's, plus what a test has moved it by.

#include <atomic>
#include <chrono>

namespace ranklog::standin {

class Clock {
 public:
  // Milliseconds since 1970.
  [[nodiscard]] long long now() const {
    const auto real = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(real).count() + offset_ms_;
  }
  void advance(long long ms) { offset_ms_ += ms; }
  void set_offset(long long ms) { offset_ms_ = ms; }
  [[nodiscard]] long long offset() const { return offset_ms_; }

 private:
  std::atomic<long long> offset_ms_ = 0;
};

}  // namespace ranklog::standin
