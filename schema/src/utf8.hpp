#pragma once

#include <cstddef>
#include <string_view>

namespace ranklog {

// Bytes of the UTF-8 character (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF) that `text`
// begins with; 0 if it begins with none.
[[nodiscard]] inline std::size_t utf8_sequence_length(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](std::size_t i) { return (at(i) & 0xC0u) == 0x80u; };
  const unsigned first = at(0);
  const unsigned second = at(1);
  if (first < 0x80) return text.empty() ? 0 : 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second >= 0xA0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool out_of_range = (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
    return continues(1) && continues(2) && continues(3) && !out_of_range ? 4 : 0;
  }
  return 0;
}

}  // namespace ranklog
