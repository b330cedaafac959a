#include "ranklog/schema/time.hpp"

#include <array>
#include <chrono>
#include <cstdio>

namespace ranklog {

std::int64_t unix_time_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string rfc3339(std::int64_t unix_ns) {
  namespace chrono = std::chrono;
  // In milliseconds before days are counted: the day of the least nanosecond begins before it.
  const chrono::sys_time moment{chrono::floor<chrono::milliseconds>(chrono::nanoseconds(unix_ns))};
  const auto day = chrono::floor<chrono::days>(moment);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss time(moment - day);
  std::array<char, 96> text{};
  (void)std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                      static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                      static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
                      static_cast<int>(time.subseconds().count()));
  return text.data();
}

}  // namespace ranklog
