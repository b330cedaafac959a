#pragma once
// Turns what a program prints into numbered lines, as W&B's client does (core/internal/terminalemulator and
// runconsolelogs of its source): a small terminal for each of stdout and stderr that understands \n (and goes
// to the start of the line), \r, ESC[nA and ESC[nB (n lines up and down), so that a progress bar is one line
// that changes. Other escapes are text. Bytes that are no UTF-8 become U+FFFD.
//
// Pure: no clock, no descriptor. The lines do not depend on how the bytes are cut into calls.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ranklog::writer {

struct ConsoleLine {
  std::int64_t number = 0;  // from 0, in the order in which lines were begun
  bool from_stderr = false;
  std::int64_t time_ns = 0;  // when it was begun
  std::string text;          // UTF-8; what does not fit is cut off
};

class ConsoleLines {
 public:
  // W&B's numbers: how far the cursor can go back, and how many code points of a line are kept.
  static constexpr std::size_t kHeight = 32;
  static constexpr std::size_t kMaxLineLength = 4096;

  void feed(std::string_view bytes, bool from_stderr, std::int64_t time_ns);

  // Lines that were left for the first time, or cannot change any more, since the last call: a plain line
  // is among them once, as soon as it ends.
  [[nodiscard]] std::vector<ConsoleLine> take_finished();
  // All that have changed. A line comes again whenever it changes; the last text counts.
  [[nodiscard]] std::vector<ConsoleLine> take_changed();
  [[nodiscard]] bool has_changed() const noexcept;

 private:
  struct Line {
    std::u32string text;
    std::int64_t time_ns = 0;
    bool from_stderr = false;
    bool changed = true;
    bool taken = false;
  };
  struct Terminal {
    std::vector<std::int64_t> view;  // numbers of the lines in sight, from the top
    std::size_t row = 0, column = 0;
    std::u32string escape;  // begun and not complete
    unsigned code_point = 0;
    unsigned missing = 0;                         // bytes of the code point
    unsigned char lowest = 0x80, highest = 0xBF;  // that the next of them may be
  };

  void feed_byte(Terminal& terminal, unsigned char byte, bool from_stderr, std::int64_t time_ns);
  void feed_character(Terminal& terminal, char32_t character, bool from_stderr, std::int64_t time_ns);
  [[nodiscard]] bool continue_escape(Terminal& terminal, char32_t character, bool from_stderr,
                                     std::int64_t time_ns);
  [[nodiscard]] Line* line_under_cursor(Terminal& terminal, bool from_stderr, std::int64_t time_ns);
  void put(Terminal& terminal, char32_t character, bool from_stderr, std::int64_t time_ns);
  void put_plain(Terminal& terminal, std::string_view text, bool from_stderr, std::int64_t time_ns);
  [[nodiscard]] std::int64_t begin_line(bool from_stderr, std::int64_t time_ns);
  [[nodiscard]] Line* find(std::int64_t number);
  [[nodiscard]] bool is_under_a_cursor(std::int64_t number) const;
  void take(std::vector<ConsoleLine>& out, std::size_t index);

  Terminal terminals_[2];          // stdout, stderr
  std::int64_t first_ = 0;         // number of lines_.front()
  std::deque<Line> lines_;         // the last kHeight: what went before cannot change
  std::vector<ConsoleLine> past_;  // changed lines that went
};

}  // namespace ranklog::writer
