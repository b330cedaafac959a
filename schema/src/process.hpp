#pragma once
// Whether the process that wrote a file still lives.

#include <cstdint>
#include <limits>
#include <string_view>

namespace ranklog {

// True only if that is certain: `host` is this host, and no process here has that pid and start time
// (field 22 of /proc/<pid>/stat).
[[nodiscard]] bool is_gone_from_this_host(std::string_view host, std::int64_t pid, std::uint64_t start_ticks);

// How long ago `then` was; a damaged time is as far away as numbers go.
[[nodiscard]] inline std::int64_t since(std::int64_t then, std::int64_t now) noexcept {
  std::int64_t elapsed = 0;
  if (!__builtin_sub_overflow(now, then, &elapsed)) return elapsed;
  return now < then ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

}  // namespace ranklog
