#pragma once
// What stdout is: a terminal of some size, with or without colour, or a pipe.

#include <optional>
#include <string>
#include <string_view>

namespace ranklog::cli {

enum class ColorMode : unsigned char { kAuto, kAlways, kNever };

struct Terminal {
  bool interactive = false;    // stdout is a terminal
  bool color = false;          // ANSI colours are wanted
  std::optional<int> columns;  // of the terminal, or COLUMNS; empty when not known
  std::optional<int> rows;
};

// kAuto: colour on a terminal unless NO_COLOR is set (to anything but the empty text) or TERM is "dumb".
[[nodiscard]] Terminal detect_terminal(ColorMode mode);

// The text in ANSI colour `code` (such as 32 for green); unchanged where `color` is false.
[[nodiscard]] std::string colored(bool color, int code, std::string_view text);

}  // namespace ranklog::cli
