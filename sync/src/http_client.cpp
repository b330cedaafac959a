#include "ranklog/sync/http_client.hpp"

#include <algorithm>

#include "ranklog/schema/error.hpp"

namespace ranklog::sync {
namespace {

using std::chrono::milliseconds;

std::string seconds_text(milliseconds duration) {
  return std::to_string((duration.count() + 999) / 1000) + " s";
}

std::string host_of(const std::string& url) {
  const std::size_t colon = url.find("://");
  if (colon == std::string::npos) return url;
  return url.substr(colon + 3, url.find('/', colon + 3) - colon - 3);
}

// The server is there and has decided.
bool is_final_answer(const HttpResponse& response) {
  return response.delivery == Delivery::kAnswered && (response.status < 500 || response.status == 501) &&
         response.status != 429 && response.status != 408;
}

bool is_passing_fault(const HttpResponse& response) {
  return response.delivery == Delivery::kAnswered || response.delivery == Delivery::kNotSent ||
         response.delivery == Delivery::kUnclear;
}

[[noreturn]] void give_up(const HttpRequest& request, const HttpResponse& response, const std::string& what) {
  switch (response.delivery) {
    case Delivery::kUntrusted:
      throw Error(ErrorCode::kServer,
                  "the certificate of " + host_of(request.url) + " was refused (" + response.fault + ")",
                  "name your site's certificates in SSL_CERT_FILE");
    case Delivery::kSourceChanged:
      throw Error(ErrorCode::kDamaged, what + ": " + response.fault);
    case Delivery::kStopped:
      throw Error(ErrorCode::kInterrupted, "stopped; what the server has confirmed is recorded");
    default:
      throw Error(ErrorCode::kTemporary,
                  what + ": " + host_of(request.url) + ": " + describe_failure(response) +
                      ", however often it was tried",
                  "run the same command again later");
  }
}

}  // namespace

std::optional<std::string_view> HttpResponse::header(std::string_view lower_case_name) const noexcept {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return std::nullopt;
}

HttpClient::HttpClient(Transport& transport, Clock& clock, const StopFlag& stop, Options options)
    : transport_(transport), clock_(clock), stop_(stop), options_(std::move(options)) {}

HttpResponse HttpClient::send(Endpoint endpoint, const HttpRequest& request, const std::string& what) {
  for (int number = 0;; ++number) {
    HttpResponse response = attempt(request);
    if (settle(endpoint, number, request, response, what).action != Verdict::Action::kRetry) return response;
  }
}

HttpResponse HttpClient::attempt(const HttpRequest& request) {
  check_stop();
  HttpRequest bounded = request;
  // A server that swallows requests must not hold us longer than patience allows.
  bounded.timeout = std::min(request.timeout, std::max(patience_left(), milliseconds(1'000)));
  const auto began = clock_.now();
  HttpResponse response = transport_.perform(bounded);
  if (is_final_answer(response) || is_passing_fault(response)) count(is_final_answer(response), began);
  return response;
}

Verdict HttpClient::settle(Endpoint endpoint, int attempt_number, const HttpRequest& request,
                           const HttpResponse& response, const std::string& what) {
  const Verdict verdict =
      judge(endpoint, attempt_number, response, clock_.random(), clock_.unix_ns() / 1'000'000'000);
  if (verdict.action == Verdict::Action::kDone) return verdict;
  if (verdict.action == Verdict::Action::kGiveUp) {
    // A final answer is the caller's to explain; no answer, or one that should have passed, is ours.
    if (!is_final_answer(response)) give_up(request, response, what);
    return verdict;
  }
  const milliseconds left = patience_left();
  const std::string trouble = what + ": " + host_of(request.url) + ": " + describe_failure(response);
  const bool asked_to_wait = response.header("retry-after").has_value();
  if (left == milliseconds(0) || (asked_to_wait && verdict.wait >= left)) {
    const std::string why = asked_to_wait && left > milliseconds(0)
                                ? ", and asks to wait " + seconds_text(verdict.wait) +
                                      " where --timeout leaves " + seconds_text(left)
                                : ", for longer than --timeout (" + seconds_text(options_.patience) + ")";
    throw Error(ErrorCode::kTemporary, trouble + why, "run the same command again later");
  }
  // The last try comes when patience ends.
  const milliseconds wait = std::min(verdict.wait, left);
  options_.notice(trouble + "; trying again in " + seconds_text(wait));
  pause(wait, request.while_waiting);
  return verdict;
}

void HttpClient::pause(milliseconds duration, const std::function<void()>& while_waiting) {
  constexpr milliseconds kSlice{100};
  constexpr int kSlicesPerCall = 10;
  for (int slice = 0; duration > milliseconds(0); ++slice) {
    check_stop();
    clock_.sleep(std::min(duration, kSlice));
    duration -= kSlice;
    if (while_waiting && slice % kSlicesPerCall == kSlicesPerCall - 1) while_waiting();
  }
}

milliseconds HttpClient::patience_left() {
  const std::lock_guard lock(mutex_);
  if (!failing_since_) return options_.patience;
  const auto waited = std::chrono::duration_cast<milliseconds>(clock_.now() - *failing_since_);
  return std::max(milliseconds(0), options_.patience - waited);
}

void HttpClient::check_stop() const {
  if (stop_.count() > 0) {
    throw Error(ErrorCode::kInterrupted, "stopped; what the server has confirmed is recorded");
  }
}

void HttpClient::count(bool success, std::chrono::steady_clock::time_point began) {
  const std::lock_guard lock(mutex_);
  if (success) {
    failing_since_.reset();
  } else if (!failing_since_) {
    failing_since_ = began;
  }
}

std::string describe_failure(const HttpResponse& response) {
  if (response.delivery != Delivery::kAnswered) return response.fault;
  constexpr std::size_t kLongest = 200;
  std::string text = std::to_string(response.status);
  std::string body = response.body.substr(0, kLongest);
  std::replace_if(body.begin(), body.end(), [](unsigned char c) { return c < ' '; }, ' ');
  if (!body.empty()) text += " (" + body + ")";
  return text;
}

}  // namespace ranklog::sync
