#pragma once
// Stand-ins for what sync gets injected: environment, time, and the other end of the wire.

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranklog/sync/clock.hpp"
#include "ranklog/sync/environment.hpp"
#include "ranklog/sync/transport.hpp"

namespace ranklog::sync::test {

inline Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
}

// Sleeping moves it; chance is always the same.
class FakeClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() override {
    const std::lock_guard lock(mutex_);
    return std::chrono::steady_clock::time_point(slept_);
  }
  std::int64_t unix_ns() override { return 1'700'000'000'000'000'000; }
  void sleep(std::chrono::milliseconds duration) override {
    const std::lock_guard lock(mutex_);
    slept_ += duration;
  }
  double random() override { return 0; }

  [[nodiscard]] std::chrono::milliseconds slept() {
    const std::lock_guard lock(mutex_);
    return slept_;
  }

 private:
  std::mutex mutex_;
  std::chrono::milliseconds slept_{0};
};

inline HttpResponse answer(int status, std::string body = "{}",
                           std::vector<std::pair<std::string, std::string>> headers = {}) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  response.headers = std::move(headers);
  return response;
}

inline HttpResponse no_answer(Delivery delivery) {
  HttpResponse response;
  response.delivery = delivery;
  response.fault = delivery == Delivery::kSourceChanged ? "the file has changed" : "connection refused";
  return response;
}

// Answers from a list; the last one for ever.
class ScriptedTransport final : public Transport {
 public:
  explicit ScriptedTransport(std::vector<HttpResponse> script) : script_(script.begin(), script.end()) {}

  HttpResponse perform(const HttpRequest& request) override {
    requests.push_back(request);
    HttpResponse response = script_.front();
    if (script_.size() > 1) script_.pop_front();
    return response;
  }

  // Before the rest of the list.
  void answer_next(HttpResponse response) { script_.push_front(std::move(response)); }

  std::vector<HttpRequest> requests;

 private:
  std::deque<HttpResponse> script_;
};

}  // namespace ranklog::sync::test
