#include "ranklog/cli/text.hpp"

#include <gtest/gtest.h>

namespace ranklog::cli {
namespace {

TEST(Text, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("loss"), 4u);
  EXPECT_EQ(display_width("größe"), 5u);
  EXPECT_EQ(display_width("损失"), 4u);
  EXPECT_EQ(display_width("e\xCC\x81"), 1u);  // e and a combining accent
  EXPECT_EQ(display_width("⣿"), 1u);
}

TEST(Text, ControlCharactersCannotReachTheTerminal) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable("line\nbreak\ttab\rreturn"), "line\\nbreak\\ttab\\rreturn");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");  // C1 control sequence introducer
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "evil"),
            "\\u202eevil");  // right-to-left override
  EXPECT_EQ(printable("größe 损失"), "größe 损失");
}

TEST(Text, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(printable("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(printable("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // an overlong NUL
  EXPECT_EQ(printable("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(printable("cut \xE6\x8D"), "cut \xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Text, CutTextFitsAndShowsThatItWasCut) {
  EXPECT_EQ(cut_to("experiment", 10), "experiment");
  EXPECT_EQ(cut_to("experiment", 6), "exper…");
  EXPECT_EQ(cut_to("experiment", 6, true), "exp...");
  EXPECT_EQ(cut_to("损失损失", 5), "损失…");
  EXPECT_EQ(cut_to("损失损失", 4), "损…");  // half a character is never shown
}

TEST(Text, PaddingGoesToTheAskedSide) {
  EXPECT_EQ(pad_to("损", 4, Align::kLeft), "损  ");
  EXPECT_EQ(pad_to("损", 4, Align::kRight), "  损");
  EXPECT_EQ(pad_to("longer", 4, Align::kRight), "longer");
}

}  // namespace
}  // namespace ranklog::cli
