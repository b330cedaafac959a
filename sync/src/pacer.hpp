#pragma once
// How fast one run's file_stream requests may follow each other.

#include <chrono>
#include <optional>
#include <string_view>

#include "ranklog/sync/transport.hpp"

namespace ranklog::sync {

// A token bucket: W&B asks for at most 2 requests a second and run. A burst lets small uploads through at
// once. RateLimit-Remaining and RateLimit-Reset slow it down further (protocol page 3.7).
class Pacer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Pacer(TimePoint now) : last_(now) {}

  // Takes a token and returns how long to wait before the request may go.
  [[nodiscard]] std::chrono::milliseconds take(TimePoint now);
  void observe(const HttpResponse& response);

 private:
  static constexpr double kRequestsPerSecond = 2;
  static constexpr double kBurst = 10;

  double rate_ = kRequestsPerSecond;
  double tokens_ = kBurst;
  TimePoint last_;
};

}  // namespace ranklog::sync
