#pragma once
// Numbers, sizes and times as people read them.

#include <cstdint>
#include <string>
#include <string_view>

namespace ranklog::cli {

[[nodiscard]] std::string format_count(std::uint64_t count);  // 1,234,567
[[nodiscard]] std::string format_size(std::uint64_t bytes);   // 1.5 MiB
[[nodiscard]] std::string format_duration(std::int64_t ns);   // 420 ms, 12.3 s, 4m 05s, 2h 07m, 3d 04h
// The longest there is where damaged times lie further apart.
[[nodiscard]] std::int64_t time_between(std::int64_t from_ns, std::int64_t to_ns);
[[nodiscard]] std::string format_local_time(std::int64_t unix_ns);  // 2026-03-01 14:05, in the user's zone
// The shortest text that reads back to the same bits; NaN, Infinity, -Infinity by name.
[[nodiscard]] std::string format_double(double value);
// "1 file", "2 files".
[[nodiscard]] std::string plural(std::uint64_t count, std::string_view noun);

}  // namespace ranklog::cli
