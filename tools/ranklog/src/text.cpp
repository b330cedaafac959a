#include "ranklog/cli/text.hpp"

#include <algorithm>
#include <array>

namespace ranklog::cli {
namespace {

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

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const CodePoint c = decode_utf8(text);
    width += width_of(c.value);
    text.remove_prefix(c.bytes);
  }
  return width;
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
