#pragma once
// Small conversions of text that HTTP and the state folder need.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranklog::standin {

// Standard base64, padding optional. Empty if a character does not belong.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);
[[nodiscard]] std::string hex_of(std::string_view bytes);
// "a%2Fb" to "a/b". Broken escapes stay as they are.
[[nodiscard]] std::string percent_decode(std::string_view text);
// Lower-case letters and digits from the system's random source.
[[nodiscard]] std::string random_token(std::size_t length);
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
// "2026-01-31T12:00:00.250Z" of milliseconds since 1970, and back (fraction optional, UTC only).
[[nodiscard]] std::string format_time(long long unix_ms);
[[nodiscard]] std::optional<long long> parse_time(const std::string& text);
// "12.3 KiB"
[[nodiscard]] std::string format_bytes(unsigned long long bytes);
// Does `text` match `pattern`, in which '*' stands for any characters?
[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace ranklog::standin
