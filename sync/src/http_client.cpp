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

// Text for a terminal: cut short, without control characters.
std::string printable(std::string text) {
  constexpr std::size_t kLongest = 200;
  text.resize(std::min(text.size(), kLongest));
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  return text;
}

// "AccessDenied" in <Error><Code>AccessDenied</Code>...; empty: there is none.
std::string storage_code(const std::string& body) {
  constexpr std::string_view kOpen = "<Code>";
  constexpr std::size_t kLongest = 64;
  const std::size_t tag = body.find(kOpen);
  if (tag == std::string::npos) return "";
  const std::size_t begin = tag + kOpen.size();
  const std::size_t end = body.find("</Code>", begin);
  if (end == std::string::npos || end - begin > kLongest) return "";
  return body.substr(begin, end - begin);
}

void mask(std::string& text, const std::string& secret) {
  constexpr std::string_view kMask = "***";
  if (secret.empty()) return;
  for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
    text.replace(at, secret.size(), kMask);
    at += kMask.size();
  }
}

[[noreturn]] void give_up(Endpoint endpoint, const HttpRequest& request, const HttpResponse& response,
                          const std::string& what) {
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
                  what + ": " + host_of(request.url) + ": " + describe_failure(endpoint, response) +
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
    HttpResponse response = attempt(request, what);
    if (settle(endpoint, number, request, response, what).action != Verdict::Action::kRetry) return response;
  }
}

HttpResponse HttpClient::attempt(const HttpRequest& request, const std::string& what) {
  throw_if_stopped(stop_);
  HttpRequest bounded = request;
  // A server that swallows requests must not hold us longer than patience allows.
  bounded.timeout = std::min(request.timeout, std::max(patience_left(what), milliseconds(1'000)));
  const auto began = clock_.now();
  HttpResponse response = transport_.perform(bounded);
  for (const std::string& secret : options_.secrets) mask(response.body, secret);
  if (is_final_answer(response) || is_passing_fault(response)) count(is_final_answer(response), what, began);
  return response;
}

Verdict HttpClient::settle(Endpoint endpoint, int attempt_number, const HttpRequest& request,
                           const HttpResponse& response, const std::string& what) {
  const Verdict verdict =
      judge(endpoint, attempt_number, response, clock_.random(), clock_.unix_ns() / 1'000'000'000);
  if (verdict.action == Verdict::Action::kDone) return verdict;
  if (verdict.action == Verdict::Action::kGiveUp) {
    // A final answer is the caller's to explain; no answer, or one that should have passed, is ours.
    if (!is_final_answer(response)) give_up(endpoint, request, response, what);
    return verdict;
  }
  const milliseconds left = patience_left(what);
  const std::string trouble =
      what + ": " + host_of(request.url) + ": " + describe_failure(endpoint, response);
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
    throw_if_stopped(stop_);
    clock_.sleep(std::min(duration, kSlice));
    duration -= kSlice;
    if (while_waiting && slice % kSlicesPerCall == kSlicesPerCall - 1) while_waiting();
  }
}

milliseconds HttpClient::patience_left(const std::string& what) {
  const std::lock_guard lock(mutex_);
  const Moment now = clock_.now();
  Moment began = all_failing_since_.value_or(now);
  if (const auto kind = failing_since_.find(what); kind != failing_since_.end()) {
    began = std::min(began, kind->second);
  }
  return std::max(milliseconds(0), options_.patience - std::chrono::duration_cast<milliseconds>(now - began));
}

void HttpClient::count(bool success, const std::string& what, Moment began) {
  const std::lock_guard lock(mutex_);
  if (success) {
    all_failing_since_.reset();
    failing_since_.erase(what);
  } else {
    if (!all_failing_since_) all_failing_since_ = began;
    failing_since_.try_emplace(what, began);
  }
}

std::string describe_failure(Endpoint endpoint, const HttpResponse& response) {
  if (response.delivery != Delivery::kAnswered) return response.fault;
  const std::string said =
      printable(endpoint == Endpoint::kUpload ? storage_code(response.body) : response.body);
  return std::to_string(response.status) + (said.empty() ? "" : " (" + said + ")");
}

}  // namespace ranklog::sync
