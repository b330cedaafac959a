#include "ranklog/cli/format.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>

namespace ranklog::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();

std::string print(const char* format, auto... values) {
  std::array<char, 96> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}

// Rounded towards the past, also before 1970.
std::int64_t floor_seconds(std::int64_t ns) {
  const std::int64_t seconds = ns / kSecond;
  return ns % kSecond < 0 ? seconds - 1 : seconds;
}

}  // namespace

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  }
  return digits;
}

std::string format_size(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would print as 1024.0: the next unit begins where rounding does.
  while (size >= 1023.95 && unit + 1 < kUnits.size()) {
    size /= 1024;
    ++unit;
  }
  return print("%.1f %s", size, kUnits[unit]);
}

std::string format_duration(std::int64_t ns) {
  // Of the smallest number there is no positive one.
  if (ns < 0) return std::string(1, '-').append(format_duration(-std::max(ns, -kLongest)));
  if (ns < 999'500'000) return print("%lld ms", static_cast<long long>((ns + 500'000) / 1'000'000));
  if (ns < 59'950'000'000) return print("%.1f s", static_cast<double>(ns) / 1e9);
  const long long seconds = ns / kSecond + (ns % kSecond >= kSecond / 2 ? 1 : 0);
  if (seconds < 3600) return print("%lldm %02llds", seconds / 60, seconds % 60);
  const long long minutes = seconds / 60;
  constexpr long long kDay = 24 * 60LL;
  if (minutes < kDay) return print("%lldh %02lldm", minutes / 60, minutes % 60);
  const long long hours = minutes / 60;
  return print("%lldd %02lldh", hours / 24, hours % 24);
}

std::int64_t time_between(std::int64_t from_ns, std::int64_t to_ns) {
  std::int64_t ns = 0;
  if (!__builtin_sub_overflow(to_ns, from_ns, &ns)) return ns;
  return from_ns < to_ns ? kLongest : -kLongest;
}

std::string format_local_time(std::int64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(floor_seconds(unix_ns));
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 64> buffer{};
  return {buffer.data(), std::strftime(buffer.data(), buffer.size(), "%Y-%m-%d %H:%M", &local)};
}

std::string format_double(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return format_count(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace ranklog::cli
