#include "console_lines.hpp"

#include <algorithm>
#include <utility>

namespace ranklog::writer {
namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr char32_t kEscape = 0x1B;
constexpr std::size_t kLongestEscape = 5;  // ESC [ and three digits

void append_utf8(std::string& out, char32_t c) {
  const auto trail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    trail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    trail(6);
    trail(0);
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    trail(12);
    trail(6);
    trail(0);
  }
}

std::string to_utf8(const std::u32string& text) {
  std::string utf8;
  utf8.reserve(text.size());
  for (const char32_t c : text) append_utf8(utf8, c);
  return utf8;
}

// Leading bytes that are characters and move the cursor by one each.
std::size_t count_plain(std::string_view bytes) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  return static_cast<std::size_t>(std::find_if_not(bytes.begin(), bytes.end(), is_plain) - bytes.begin());
}

std::size_t repetitions(const std::u32string& escape) {
  std::size_t count = 0;
  for (std::size_t i = 2; i < escape.size(); ++i) count = count * 10 + (escape[i] - U'0');
  return std::max<std::size_t>(count, 1);
}

}  // namespace

void ConsoleLines::feed(std::string_view bytes, bool from_stderr, std::int64_t time_ns) {
  auto& terminal = terminals_[from_stderr ? 1 : 0];
  while (!bytes.empty()) {
    const std::size_t plain = terminal.missing == 0 && terminal.escape.empty() ? count_plain(bytes) : 0;
    if (plain > 0) {
      put_plain(terminal, bytes.substr(0, plain), from_stderr, time_ns);
    } else {
      feed_byte(terminal, static_cast<unsigned char>(bytes.front()), from_stderr, time_ns);
    }
    bytes.remove_prefix(std::max<std::size_t>(plain, 1));
  }
}

// The longest beginning of a well-formed sequence that is broken off is replaced as one (Unicode 3.9, and
// Python's errors="replace").
void ConsoleLines::feed_byte(Terminal& terminal, unsigned char byte, bool from_stderr, std::int64_t time_ns) {
  const auto character = [&](char32_t c) { feed_character(terminal, c, from_stderr, time_ns); };
  if (terminal.missing > 0) {
    if (byte >= terminal.lowest && byte <= terminal.highest) {
      terminal.code_point = (terminal.code_point << 6) | (byte & 0x3FU);
      terminal.lowest = 0x80;
      terminal.highest = 0xBF;
      if (--terminal.missing == 0) character(terminal.code_point);
      return;
    }
    terminal.missing = 0;
    terminal.lowest = 0x80;
    terminal.highest = 0xBF;
    character(kReplacement);
  }
  if (byte < 0x80) return character(byte);
  if (byte < 0xC2 || byte > 0xF4) return character(kReplacement);
  terminal.missing = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  terminal.code_point = byte & (0x3FU >> terminal.missing);
  if (byte == 0xE0) terminal.lowest = 0xA0;   // not the long form of less
  if (byte == 0xED) terminal.highest = 0x9F;  // no surrogates
  if (byte == 0xF0) terminal.lowest = 0x90;
  if (byte == 0xF4) terminal.highest = 0x8F;  // not beyond U+10FFFF
}

void ConsoleLines::feed_character(Terminal& terminal, char32_t character, bool from_stderr,
                                  std::int64_t time_ns) {
  if (!terminal.escape.empty() && continue_escape(terminal, character, from_stderr, time_ns)) return;
  switch (character) {
    case U'\r':
      terminal.column = 0;
      return;
    case U'\n':
      terminal.column = 0;
      if (++terminal.row < kHeight) return;
      if (!terminal.view.empty()) terminal.view.erase(terminal.view.begin());
      --terminal.row;
      return;
    case kEscape:
      terminal.escape = kEscape;
      return;
    default:
      put(terminal, character, from_stderr, time_ns);
  }
}

// Whether the character belonged to it; if not, the sequence was text.
bool ConsoleLines::continue_escape(Terminal& terminal, char32_t character, bool from_stderr,
                                   std::int64_t time_ns) {
  auto& escape = terminal.escape;
  const bool is_digit = character >= U'0' && character <= U'9';
  if (escape.size() == 1 ? character == U'[' : is_digit && escape.size() < kLongestEscape) {
    escape += character;
    return true;
  }
  if (escape.size() > 1 && (character == U'A' || character == U'B')) {
    const std::size_t rows = repetitions(escape);
    escape.clear();
    if (character == U'A') {
      terminal.row -= std::min(terminal.row, rows);
      return true;
    }
    const std::size_t column = terminal.column;
    for (std::size_t i = 0; i < rows; ++i) feed_character(terminal, U'\n', from_stderr, time_ns);
    terminal.column = column;
    return true;
  }
  for (const char32_t c : std::exchange(escape, {})) put(terminal, c, from_stderr, time_ns);
  return false;
}

ConsoleLines::Line* ConsoleLines::line_under_cursor(Terminal& terminal, bool from_stderr,
                                                    std::int64_t time_ns) {
  while (terminal.row >= terminal.view.size()) terminal.view.push_back(begin_line(from_stderr, time_ns));
  return find(terminal.view[terminal.row]);
}

void ConsoleLines::put(Terminal& terminal, char32_t character, bool from_stderr, std::int64_t time_ns) {
  Line* line = line_under_cursor(terminal, from_stderr, time_ns);
  const std::size_t column = terminal.column++;
  if (line == nullptr || column >= kMaxLineLength) return;
  if (column >= line->text.size()) line->text.resize(column + 1, U' ');
  line->changed = line->changed || line->text[column] != character;
  line->text[column] = character;
}

// The same for many characters, each a byte.
void ConsoleLines::put_plain(Terminal& terminal, std::string_view text, bool from_stderr,
                             std::int64_t time_ns) {
  Line* line = line_under_cursor(terminal, from_stderr, time_ns);
  const std::size_t column = terminal.column;
  terminal.column += text.size();
  if (line == nullptr || column >= kMaxLineLength) return;
  text = text.substr(0, kMaxLineLength - column);
  if (column + text.size() > line->text.size()) line->text.resize(column + text.size(), U' ');
  const auto at = line->text.begin() + static_cast<std::ptrdiff_t>(column);
  line->changed = line->changed || !std::equal(text.begin(), text.end(), at);
  std::copy(text.begin(), text.end(), at);
}

std::int64_t ConsoleLines::begin_line(bool from_stderr, std::int64_t time_ns) {
  if (lines_.size() == kHeight) {
    if (lines_.front().changed) take(past_, 0);
    lines_.pop_front();
    ++first_;
  }
  Line line;
  line.time_ns = time_ns;
  line.from_stderr = from_stderr;
  lines_.push_back(std::move(line));
  return first_ + static_cast<std::int64_t>(lines_.size()) - 1;
}

ConsoleLines::Line* ConsoleLines::find(std::int64_t number) {
  return number < first_ ? nullptr : &lines_[static_cast<std::size_t>(number - first_)];
}

bool ConsoleLines::is_under_a_cursor(std::int64_t number) const {
  return std::any_of(std::begin(terminals_), std::end(terminals_), [&](const Terminal& terminal) {
    return terminal.row < terminal.view.size() && terminal.view[terminal.row] == number;
  });
}

void ConsoleLines::take(std::vector<ConsoleLine>& out, std::size_t index) {
  Line& line = lines_[index];
  out.push_back(
      {first_ + static_cast<std::int64_t>(index), line.from_stderr, line.time_ns, to_utf8(line.text)});
  line.changed = false;
  line.taken = true;
}

std::vector<ConsoleLine> ConsoleLines::take_finished() {
  auto out = std::exchange(past_, {});
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const bool is_left = !is_under_a_cursor(first_ + static_cast<std::int64_t>(i));
    if (lines_[i].changed && !lines_[i].taken && is_left) take(out, i);
  }
  return out;
}

std::vector<ConsoleLine> ConsoleLines::take_changed() {
  auto out = std::exchange(past_, {});
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].changed) take(out, i);
  }
  return out;
}

bool ConsoleLines::has_changed() const noexcept {
  return !past_.empty() ||
         std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.changed; });
}

}  // namespace ranklog::writer
