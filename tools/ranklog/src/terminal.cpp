#include "ranklog/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace ranklog::cli {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::optional<int> positive(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0) return {};
  return value;
}

}  // namespace

Terminal detect_terminal(ColorMode mode) {
  Terminal terminal;
  terminal.interactive = isatty(STDOUT_FILENO) == 1;
  const bool may_color = terminal.interactive && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  terminal.color = mode == ColorMode::kAlways || (mode == ColorMode::kAuto && may_color);
  winsize size{};
  if (terminal.interactive && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
    if (size.ws_row > 0) terminal.rows = size.ws_row;
  } else {
    terminal.columns = positive(variable("COLUMNS"));
    terminal.rows = positive(variable("LINES"));
  }
  return terminal;
}

std::string colored(bool color, int code, std::string_view text) {
  if (!color || code == 0) return std::string(text);
  return "\x1b[" + std::to_string(code) + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace ranklog::cli
