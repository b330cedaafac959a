#include "ranklog/sync/retry.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <string>

namespace ranklog::sync {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxTries = 20;  // of everything but file_stream, which only patience ends
constexpr milliseconds kFirstWait{2'000};
constexpr milliseconds kLongestWait{60'000};
constexpr milliseconds kShortestWait{1'000};  // that a server can ask for more than once

// Answers that will not change by asking again. Everything else from 400 on passes by itself.
struct PermanentStatus {
  int status;
  bool api;     // GraphQL and file_stream
  bool upsert;  // 409 there means "busy", and is told apart from "deleted" by the caller
};
constexpr std::array<PermanentStatus, 9> kPermanent = {{
    {400, true, true},
    {401, true, true},
    {403, true, true},
    {404, true, true},
    {409, true, false},
    {410, true, true},
    {413, true, true},
    {422, true, true},
    {501, true, true},
}};

bool is_permanent(Endpoint endpoint, int status) {
  // Storage: only 429 and server trouble are worth another try.
  if (endpoint == Endpoint::kUpload) return status == 501 || (status < 500 && status != 429);
  if (status < 400) return true;  // a redirect: not followed, and no answer to what was asked
  const auto* found = std::find_if(kPermanent.begin(), kPermanent.end(),
                                   [&](const PermanentStatus& rule) { return rule.status == status; });
  if (found == kPermanent.end()) return false;
  return endpoint == Endpoint::kUpsert ? found->upsert : found->api;
}

// 409 for an id that the server keeps for ever, as against one that is busy.
bool says_deleted(const HttpResponse& response) {
  return response.body.find("previously created and deleted") != std::string::npos;
}

milliseconds backoff(int attempt, double random) {
  const double wait =
      static_cast<double>(kFirstWait.count()) * std::exp2(std::min(attempt, 10)) * (1 + random / 4);
  return std::min(kLongestWait, milliseconds(static_cast<std::int64_t>(wait)));
}

}  // namespace

Verdict judge(Endpoint endpoint, int attempt, const HttpResponse& response, double random,
              std::int64_t now_unix_s) {
  using Action = Verdict::Action;
  Verdict verdict;
  if (response.ok()) return verdict;
  verdict.wait = backoff(attempt, random);
  switch (response.delivery) {
    case Delivery::kUntrusted:
    case Delivery::kSourceChanged:
    case Delivery::kStopped:
      verdict.action = Action::kGiveUp;
      return verdict;
    case Delivery::kNotSent:
      verdict.action = Action::kRetry;
      break;
    case Delivery::kUnclear:
      verdict.action = Action::kRetry;
      verdict.may_have_acted = true;
      break;
    case Delivery::kAnswered:
      verdict.action = is_permanent(endpoint, response.status) || says_deleted(response) ? Action::kGiveUp
                                                                                         : Action::kRetry;
      // A proxy may answer for a server that has acted; a refusal by rate limit is the server's own.
      verdict.may_have_acted = response.status >= 500 || response.status == 408;
      break;
  }
  if (const auto text = response.header("retry-after")) {
    const auto asked = parse_retry_after(*text, now_unix_s);
    // "At once", said again and again, must not become a busy loop.
    if (asked && *asked > milliseconds(0)) {
      verdict.wait = attempt == 0 ? *asked : std::max(*asked, kShortestWait);
    }
  }
  if (endpoint != Endpoint::kFileStream && attempt + 1 >= kMaxTries) verdict.action = Action::kGiveUp;
  return verdict;
}

std::optional<milliseconds> parse_retry_after(std::string_view text, std::int64_t now_unix_s) {
  double seconds = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (fault == std::errc() && stop == text.data() + text.size()) {
    if (!(seconds >= 0) || seconds > 1e9) return std::nullopt;
    return milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
  }
  std::tm when{};
  const std::string date(text);
  const char* end = strptime(date.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &when);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const std::int64_t wait = static_cast<std::int64_t>(timegm(&when)) - now_unix_s;
  return milliseconds(std::max<std::int64_t>(0, wait) * 1000);
}

}  // namespace ranklog::sync
