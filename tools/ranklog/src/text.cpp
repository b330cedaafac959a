#include "ranklog/cli/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace ranklog::cli {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct CodeRange {
  char32_t first, last;
};

// Unicode's East Asian Width "W" and "F" blocks, and emoji, coarsely: a column too many in a rare script
// costs alignment only.
constexpr std::array kWide{
    CodeRange{0x1100, 0x115F},   CodeRange{0x2E80, 0x303E},   CodeRange{0x3041, 0xA4CF},
    CodeRange{0xAC00, 0xD7A3},   CodeRange{0xF900, 0xFAFF},   CodeRange{0xFE30, 0xFE6F},
    CodeRange{0xFF00, 0xFF60},   CodeRange{0xFFE0, 0xFFE6},   CodeRange{0x1F300, 0x1F64F},
    CodeRange{0x1F680, 0x1F6FF}, CodeRange{0x1F900, 0x1FAFF}, CodeRange{0x20000, 0x3FFFD},
};
constexpr std::array kZeroWidth{
    CodeRange{0x0300, 0x036F}, CodeRange{0x0483, 0x0489}, CodeRange{0x0591, 0x05BD},
    CodeRange{0x0610, 0x061A}, CodeRange{0x064B, 0x065F}, CodeRange{0x200B, 0x200F},
    CodeRange{0x20D0, 0x20FF}, CodeRange{0xFE00, 0xFE0F}, CodeRange{0xFE20, 0xFE2F},
};

template <std::size_t N>
bool holds(const std::array<CodeRange, N>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](CodeRange range) { return range.first <= c && c <= range.last; });
}

std::size_t width_of(char32_t c) {
  if (c < 0x300) return 1;
  if (holds(kZeroWidth, c)) return 0;
  return holds(kWide, c) ? 2 : 1;
}

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

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const CodePoint c = decode_utf8(text);
    width += width_of(c.value);
    text.remove_prefix(c.bytes);
  }
  return width;
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

std::string cut_to(std::string_view text, std::size_t width, bool ascii) {
  if (display_width(text) <= width) return std::string(text);
  const std::string_view mark = ascii ? "..." : "\xE2\x80\xA6";
  const std::size_t mark_width = ascii ? 3 : 1;
  if (width < mark_width) return std::string(width, '.');
  std::size_t used = 0;
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const CodePoint c = decode_utf8(text.substr(bytes));
    if (used + width_of(c.value) > width - mark_width) break;
    used += width_of(c.value);
    bytes += c.bytes;
  }
  return std::string(text.substr(0, bytes)).append(mark);
}

std::string pad_to(std::string_view text, std::size_t width, Align align) {
  const std::size_t own = display_width(text);
  const std::string blanks(own < width ? width - own : 0, ' ');
  return align == Align::kLeft ? std::string(text) + blanks : blanks + std::string(text);
}

}  // namespace ranklog::cli
