#pragma once
// Requests that outlast passing faults, within limits of patience: one for each kind of request, one for all.

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ranklog/sync/clock.hpp"
#include "ranklog/sync/retry.hpp"
#include "ranklog/sync/stop.hpp"
#include "ranklog/sync/transport.hpp"

namespace ranklog::sync {

// Threads: safe from several at once.
class HttpClient {
 public:
  struct Options {
    // How long requests of one kind may keep failing, with none of that kind succeeding in between: a server
    // that answers questions and takes no history does not hold us for ever. Also how long all requests may
    // fail together: a server that is gone ends the whole round after this time, not each request in turn.
    std::chrono::milliseconds patience{std::chrono::minutes(10)};
    // Told about every retry: what failed, why, and when it is tried again.
    std::function<void(const std::string&)> notice = [](const std::string&) {};
    // Masked wherever a reply repeats them.
    std::vector<std::string> secrets;
  };

  // The references must outlive the client.
  HttpClient(Transport& transport, Clock& clock, const StopFlag& stop, Options options);

  // Repeats until the server has accepted or finally refused; the caller looks at the status. `what` names
  // the request in messages ("history of run x") and is its kind as to patience. Throws Error: kTemporary
  // when patience ends, kUntrusted certificates as kServer, kDamaged for a file that has changed,
  // kInterrupted after a request to stop.
  [[nodiscard]] HttpResponse send(Endpoint endpoint, const HttpRequest& request, const std::string& what);

  // One attempt, for callers that must look at the server's state before they repeat. Throws kInterrupted.
  [[nodiscard]] HttpResponse attempt(const HttpRequest& request, const std::string& what);
  // Decides, and if the answer is "retry" waits. Throws as send() does.
  [[nodiscard]] Verdict settle(Endpoint endpoint, int attempt_number, const HttpRequest& request,
                               const HttpResponse& response, const std::string& what);
  // Sleeps, calling `while_waiting` about once a second; throws kInterrupted after a request to stop.
  void pause(std::chrono::milliseconds duration, const std::function<void()>& while_waiting);

  [[nodiscard]] Clock& clock() noexcept { return clock_; }

 private:
  using Moment = std::chrono::steady_clock::time_point;

  [[nodiscard]] std::chrono::milliseconds patience_left(const std::string& what);
  void count(bool success, const std::string& what, Moment began);

  Transport& transport_;
  Clock& clock_;
  const StopFlag& stop_;
  Options options_;
  std::mutex mutex_;
  std::optional<Moment> all_failing_since_;      // guarded by mutex_
  std::map<std::string, Moment> failing_since_;  // by kind; guarded by mutex_
};

// "connection refused", "503 (text of the reply)": why an attempt did not succeed. Of a storage's reply only
// the status and the code that S3 and its kin give: the rest may hold the request, signatures included.
[[nodiscard]] std::string describe_failure(Endpoint endpoint, const HttpResponse& response);

}  // namespace ranklog::sync
