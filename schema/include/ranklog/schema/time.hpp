#pragma once
// Moments: Unix nanoseconds, by the clock of this machine.

#include <cstdint>
#include <string>

namespace ranklog {

[[nodiscard]] std::int64_t unix_time_ns() noexcept;
// 2026-03-01T13:05:09.250Z: RFC 3339 in UTC, rounded down to milliseconds; also for moments before 1970.
[[nodiscard]] std::string rfc3339(std::int64_t unix_ns);

}  // namespace ranklog
