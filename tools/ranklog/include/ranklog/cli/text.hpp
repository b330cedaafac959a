#pragma once
// Text as it lies on a terminal: how wide it is, cut to fit, and free of what would move the cursor.

#include <cstddef>
#include <string>
#include <string_view>

namespace ranklog::cli {

// One code point, and how many bytes it took. Bytes that are not UTF-8 come as U+FFFD, one at a time.
struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;
};
[[nodiscard]] CodePoint decode_utf8(std::string_view text);  // `text` is not empty

// Columns that a terminal gives the text: 0 for combining marks, 2 for East Asian wide characters and emoji.
[[nodiscard]] std::size_t display_width(std::string_view text);

// Logged names and values are strangers' text. Control characters, escape sequences among them, become
// visible escapes (\n, \x1b), bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string printable(std::string_view text);

// At most `width` columns; what is cut ends in an ellipsis (one column; "..." where `ascii`).
[[nodiscard]] std::string cut_to(std::string_view text, std::size_t width, bool ascii = false);

enum class Align : unsigned char { kLeft, kRight };
// Filled with blanks to `width` columns; longer text is left as it is.
[[nodiscard]] std::string pad_to(std::string_view text, std::size_t width, Align align);

}  // namespace ranklog::cli
