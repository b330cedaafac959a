#pragma once
// What to do after one attempt: a pure function of where, what came of it, how often, and chance.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ranklog/sync/transport.hpp"

namespace ranklog::sync {

enum class Endpoint : std::uint8_t {
  kGraphql,
  kUpsert,      // the GraphQL operation that creates or updates a run: 409 passes by itself
  kFileStream,  // history, summary and end of a run
  kUpload,      // a signed address of the storage
};

struct Verdict {
  enum class Action : std::uint8_t { kDone, kRetry, kGiveUp };
  Action action = Action::kDone;
  std::chrono::milliseconds wait{0};  // before the next try
  bool may_have_acted = false;        // the server may have done what was asked all the same
};

// `attempt` counts from 0. `random` is uniform in [0, 1). Waits are Retry-After as it is,
// from the second attempt on at least a second; where it is none, or no time at all,
// min(60 s, 2 s * 2^attempt * (1 + random / 4)).
[[nodiscard]] Verdict judge(Endpoint endpoint, int attempt, const HttpResponse& response, double random,
                            std::int64_t now_unix_s);

// Seconds, possibly fractional, or an RFC 1123 date. Empty for anything else; never negative.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_retry_after(std::string_view text,
                                                                         std::int64_t now_unix_s);

}  // namespace ranklog::sync
