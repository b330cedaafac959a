#include "ranklog/schema/printable.hpp"

#include <array>
#include <cstdio>

namespace ranklog {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// C0, DEL and C1: what a terminal acts on instead of showing it.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

// U+202A.. and U+2066.. turn the reading direction of what follows.
bool is_direction_override(char32_t c) {
  return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
}

std::string escaped(char32_t c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default: {
      std::array<char, 16> buffer{};
      (void)std::snprintf(buffer.data(), buffer.size(), c < 0x100 ? "\\x%02x" : "\\u%04x",
                          static_cast<unsigned>(c));
      return buffer.data();
    }
  }
}

}  // namespace

CodePoint decode_utf8(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {kReplacement, 1};
  char32_t value = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {kReplacement, 1};
    value = (value << 6) | (next & 0x3F);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[bytes] || value > 0x10FFFF || surrogate) return {kReplacement, 1};
  return {value, bytes};
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = decode_utf8(text);
    if (is_control(c.value) || is_direction_override(c.value)) {
      out += escaped(c.value);
    } else if (c.value == kReplacement) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(text.substr(0, c.bytes));
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

}  // namespace ranklog
