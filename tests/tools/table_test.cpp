#include "ranklog/cli/table.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace ranklog::cli {
namespace {

std::string printed(const Table& table, bool color = false, std::optional<std::size_t> width = {}) {
  std::ostringstream out;
  table.print(out, color, width);
  return out.str();
}

TEST(Table, ColumnsAlignUnderTheirTitles) {
  Table table({{"name"}, {"rows", Align::kRight}});
  table.add({"loss", "1,800"});
  table.add({"损失", "7"});
  EXPECT_EQ(printed(table),
            "name   rows\n"
            "loss  1,800\n"
            "损失      7\n");
}

TEST(Table, NoLineEndsInBlanks) {
  Table table({{"a"}, {"b"}});
  table.add({"x", "longer"});
  table.add({"y", ""});
  EXPECT_EQ(printed(table), "a  b\nx  longer\ny\n");
}

TEST(Table, AWideTableIsCutToFitTheTerminal) {
  Table table({{"id", Align::kLeft, false}, {"text"}});
  table.add({"0123456789", "a text that is much too long for the line"});
  EXPECT_EQ(printed(table, false, 24),
            "id          text\n"
            "0123456789  a text that…\n");
  // Without a limit nothing is cut.
  EXPECT_NE(printed(table).find("for the line"), std::string::npos);
}

TEST(Table, ColumnsThatMustNotShrinkStayWholeInANarrowTerminal) {
  Table table({{"number", Align::kRight, false}, {"text"}});
  table.add({"1234567890123456", "abcdefghijklmnop"});
  EXPECT_EQ(printed(table, false, 10),
            "          number  text\n"
            "1234567890123456  abcdefg…\n");
}

TEST(Table, ColourDoesNotMoveColumns) {
  Table table({{"state"}, {"n"}});
  table.add({{"ok", 32}, "1"});
  table.add({{"crashed", 31}, "2"});
  EXPECT_EQ(printed(table, true),
            "\x1b[1mstate    n\x1b[0m\n"
            "\x1b[32mok\x1b[0m       1\n"
            "\x1b[31mcrashed\x1b[0m  2\n");
  EXPECT_EQ(printed(table, false).find('\x1b'), std::string::npos);
}

TEST(Table, LoggedTextCannotBreakTheTable) {
  Table table({{"key"}, {"n"}});
  table.add({"a\nb\x1b[2J", "1"});
  EXPECT_EQ(printed(table), "key          n\na\\nb\\x1b[2J  1\n");
}

}  // namespace
}  // namespace ranklog::cli
