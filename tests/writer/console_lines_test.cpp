// What lines a program has printed. Expectations for single sequences are those of the official client's own
// emulator.

#include "console_lines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace ranklog::writer {
namespace {

using Texts = std::vector<std::string>;

// Later rows of a line replace earlier ones.
class Screen {
 public:
  void add(const std::vector<ConsoleLine>& rows) {
    for (const auto& row : rows) lines_[row.number] = row;
    rows_ += rows.size();
  }
  [[nodiscard]] Texts texts() const {
    Texts texts;
    for (const auto& [number, line] : lines_) {
      EXPECT_EQ(number, static_cast<std::int64_t>(texts.size())) << "a line is missing";
      texts.push_back((line.from_stderr ? "E:" : "") + line.text);
    }
    return texts;
  }
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  std::map<std::int64_t, ConsoleLine> lines_;
  std::size_t rows_ = 0;
};

Texts lines_of(std::string_view bytes) {
  ConsoleLines lines;
  lines.feed(bytes, false, 0);
  Screen screen;
  screen.add(lines.take_changed());
  return screen.texts();
}

TEST(ConsoleLines, NewlinesEndLinesAndEmptyLinesCount) {
  EXPECT_EQ(lines_of("one\ntwo\n"), (Texts{"one", "two"}));
  EXPECT_EQ(lines_of("one\n\n\nfour"), (Texts{"one", "", "", "four"}));
  EXPECT_EQ(lines_of("one\r\ntwo\r\n"), (Texts{"one", "two"}));
  EXPECT_EQ(lines_of(""), Texts());
}

TEST(ConsoleLines, CarriageReturnsOverwrite) {
  EXPECT_EQ(lines_of("one\ntwo\rwh"), (Texts{"one", "who"}));
  EXPECT_EQ(lines_of("10%\r 55%\r100%\n"), (Texts{"100%"}));
}

TEST(ConsoleLines, TheCursorGoesUpAndDown) {
  EXPECT_EQ(lines_of("one\ntwo\x1b[Arous\x1b[Btasks"), (Texts{"onerous", "two    tasks"}));
  EXPECT_EQ(lines_of("a\nb\nc\nd\x1b[3AX\x1b[2BY"), (Texts{"aX", "b", "c Y", "d"}));
  EXPECT_EQ(lines_of("a\x1b[9AX"), (Texts{"aX"})) << "not above the first line";
}

TEST(ConsoleLines, OtherEscapesAreText) {
  EXPECT_EQ(lines_of("\x1b?\x1b[?"), (Texts{"\x1b?\x1b[?"}));
  EXPECT_EQ(lines_of("\x1b[31mred\x1b[0m"), (Texts{"\x1b[31mred\x1b[0m"}));
  EXPECT_EQ(lines_of("\x1b[1234A"), (Texts{"\x1b[1234A"}));
  EXPECT_EQ(lines_of("\x1b\nnext"), (Texts{"\x1b", "next"}));
}

TEST(ConsoleLines, OnlyTheLast32LinesCanBeChanged) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += std::to_string(i) + "\n";
  text += "\x1b[99AX";
  const auto lines = lines_of(text);
  ASSERT_EQ(lines.size(), 40U);
  EXPECT_EQ(lines[8], "8");
  EXPECT_EQ(lines[9], "X");
}

TEST(ConsoleLines, LongLinesAreCutAt4096CodePoints) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "\u00e9";
  const auto lines = lines_of(text + "\nshort");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], text.substr(0, 2 * 4096));
  EXPECT_EQ(lines[1], "short");
}

// Python: b"...".decode(errors="replace")
TEST(ConsoleLines, BytesThatAreNoUtf8AreReplaced) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(lines_of("a\xff"
                     "b"),
            (Texts{"a" + r + "b"}));
  EXPECT_EQ(lines_of("\xe2\x82x"), (Texts{r + "x"}));
  EXPECT_EQ(lines_of("\xe2\x82\xac"), (Texts{"\u20ac"}));
  EXPECT_EQ(lines_of("\xc0\xaf|\xe0\x80\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xf0\x9f\x98\x80"),
            (Texts{r + r + "|" + r + r + r + "|" + r + r + r + "|" + r + r + r + r + "|\U0001F600"}));
  EXPECT_EQ(lines_of("\xf0\x9f\nnext"), (Texts{r, "next"}));
}

TEST(ConsoleLines, StdoutAndStderrAreLinesOfTheirOwn) {
  ConsoleLines lines;
  lines.feed("progress 1", true, 10);
  lines.feed("epoch 0\n", false, 20);
  lines.feed("\rprogress 2", true, 30);
  Screen screen;
  const auto rows = lines.take_changed();
  screen.add(rows);
  EXPECT_EQ(screen.texts(), (Texts{"E:progress 2", "epoch 0"}));
  EXPECT_EQ(rows[0].time_ns, 10) << "when it was begun";
}

TEST(ConsoleLines, APlainLineIsGivenOnceAndAsSoonAsItEnds) {
  ConsoleLines lines;
  lines.feed("one\ntw", false, 0);
  auto rows = lines.take_finished();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].text, "one");
  EXPECT_TRUE(lines.has_changed());
  lines.feed("o\n", false, 0);
  rows = lines.take_finished();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].text, "two");
  EXPECT_FALSE(lines.has_changed());
  EXPECT_TRUE(lines.take_changed().empty());
}

TEST(ConsoleLines, ProgressBarsAreGivenWhenAskedForNotWheneverTheyMove) {
  ConsoleLines lines;
  std::size_t rows = 0;
  for (int i = 0; i < 1000; ++i) {  // as tqdm draws two bars
    lines.feed("\router " + std::to_string(i) + "\n\rinner " + std::to_string(i) + "\x1b[A", true, i);
    rows += lines.take_finished().size();
  }
  EXPECT_LE(rows, 2U);
  Screen screen;
  screen.add(lines.take_changed());
  EXPECT_EQ(screen.texts(), (Texts{"E:outer 999", "E:inner 999"}));
}

TEST(ConsoleLines, MemoryIsThatOfTheLinesInSight) {
  ConsoleLines lines;
  std::size_t rows = 0;
  for (int i = 0; i < 100000; ++i) {
    lines.feed("line\n", false, i);
    rows += lines.take_finished().size();
  }
  EXPECT_EQ(rows, 100000U);
}

// Pieces that do something, in any order.
std::string random_output(std::mt19937& random) {
  static const Texts pieces{"a",        "word",    "\n",       "\r",       "\r\n",
                            "\x1b[A",   "\x1b[2A", "\x1b[B",   "\x1b[12B", "\x1b[",
                            "\x1b",     "\x1b[1",  "\u00e9",   "\u20ac",   "\U0001F600",
                            "\xe2\x82", "\xff",    "\xf0\x9f", "\x80",     std::string(1, '\0'),
                            "\n\n\n",   "7",       "[",        "A"};
  std::string text;
  for (int i = 0; i < 300; ++i) text += pieces[random() % pieces.size()];
  return text;
}

TEST(ConsoleLines, TheResultDoesNotDependOnHowTheBytesAreCut) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::string text = random_output(random);
    ConsoleLines lines;
    Screen screen;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = std::min<std::size_t>(1 + random() % 20, text.size() - at);
      lines.feed(std::string_view(text).substr(at, size), false, 0);
      at += size;
      if (random() % 3 == 0) screen.add(lines.take_finished());
      if (random() % 10 == 0) screen.add(lines.take_changed());
    }
    screen.add(lines.take_changed());
    ASSERT_EQ(screen.texts(), lines_of(text)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ranklog::writer
