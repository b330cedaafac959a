#pragma once
// Requests that outlast passing faults, within a limit of patience shared by all of them.

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "ranklog/sync/clock.hpp"
#include "ranklog/sync/retry.hpp"
#include "ranklog/sync/stop.hpp"
#include "ranklog/sync/transport.hpp"

namespace ranklog::sync {

// Threads: safe from several at once.
class HttpClient {
 public:
  struct Options {
    // How long requests may keep failing, with none succeeding in between. A server that is gone thus ends
    // the whole round after this time, not each request in turn.
    std::chrono::milliseconds patience{std::chrono::minutes(10)};
    // Told about every retry: what failed, why, and when it is tried again.
    std::function<void(const std::string&)> notice = [](const std::string&) {};
  };

  // The references must outlive the client.
  HttpClient(Transport& transport, Clock& clock, const StopFlag& stop, Options options);

  // Repeats until the server has accepted or finally refused; the caller looks at the status. `what` names
  // the request in messages ("history of run x"). Throws Error: kTemporary when patience ends, kUntrusted
  // certificates as kServer, kDamaged for a file that has changed, kInterrupted after a request to stop.
  [[nodiscard]] HttpResponse send(Endpoint endpoint, const HttpRequest& request, const std::string& what);

  // One attempt, for callers that must look at the server's state before they repeat. Throws kInterrupted.
  [[nodiscard]] HttpResponse attempt(const HttpRequest& request);
  // Decides, and if the answer is "retry" waits. Throws as send() does.
  [[nodiscard]] Verdict settle(Endpoint endpoint, int attempt_number, const HttpRequest& request,
                               const HttpResponse& response, const std::string& what);
  // Sleeps, calling `while_waiting` about once a second; throws kInterrupted after a request to stop.
  void pause(std::chrono::milliseconds duration, const std::function<void()>& while_waiting);

  [[nodiscard]] Clock& clock() noexcept { return clock_; }

 private:
  [[nodiscard]] std::chrono::milliseconds patience_left();
  void check_stop() const;
  void count(bool success, std::chrono::steady_clock::time_point began);

  Transport& transport_;
  Clock& clock_;
  const StopFlag& stop_;
  Options options_;
  std::mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> failing_since_;  // guarded by mutex_
};

// "connection refused", "503 (text of the reply)": why an attempt did not succeed.
[[nodiscard]] std::string describe_failure(const HttpResponse& response);

}  // namespace ranklog::sync
