#pragma once
// Text for a terminal, free of what would move its cursor.

#include <cstddef>
#include <string>
#include <string_view>

namespace ranklog {

// One code point, and how many bytes it took. Bytes that are not UTF-8 come as U+FFFD, one at a time.
struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;
};
[[nodiscard]] CodePoint decode_utf8(std::string_view text);  // `text` is not empty

// Logged names and values are strangers' text. Control characters, escape sequences among them, become
// visible escapes (\n, \x1b), bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace ranklog
