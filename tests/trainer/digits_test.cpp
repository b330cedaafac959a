#include "ranklog/trainer/digits.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "support/temp_dir.hpp"

namespace ranklog::test {
namespace {

// 64 pixels of the value 8 and a label.
std::string row(const std::string& label) {
  std::string text;
  for (int i = 0; i < Digits::kPixels; ++i) text += "8,";
  return text + label;
}

std::string replace_column(std::string text, int column, const std::string& value) {
  std::size_t begin = 0;
  for (int i = 1; i < column; ++i) begin = text.find(',', begin) + 1;
  const std::size_t end = std::min(text.find(',', begin), text.size());
  return text.replace(begin, end - begin, value);
}

class DigitsFile : public testing::Test {
 protected:
  Digits read(const std::string& text) {
    write_file(path(), text);
    return read_digits(path());
  }
  std::string refusal(const std::string& text) {
    try {
      (void)read(text);
      return "nothing was refused";
    } catch (const Error& e) {
      EXPECT_EQ(exit_status(e.code()), kExitUsage);
      return e.what();
    }
  }
  [[nodiscard]] std::filesystem::path path() const { return dir_ / "some digits.csv"; }
  [[nodiscard]] std::string at(int row, int column) const {
    return "data file '" + path().string() + "', row " + std::to_string(row) + ", column " +
           std::to_string(column) + ": ";
  }

  TempDir dir_;
};

TEST_F(DigitsFile, TheShippedDigitsAreAllThere) {
  const Digits digits = read_digits(RANKLOG_DIGITS);
  ASSERT_EQ(digits.size(), 1797U);
  ASSERT_EQ(digits.pixels.size(), 1797U * 64U);
  // Counts per class, as the data set's authors publish them.
  std::array<int, 10> counts{};
  for (const std::int64_t label : digits.labels) ++counts[static_cast<std::size_t>(label)];
  EXPECT_EQ(counts, (std::array<int, 10>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}));
  EXPECT_EQ(digits.pixels[2], 5.0F / 16.0F);
}

TEST_F(DigitsFile, PlainRowsAreRead) {
  const Digits digits = read(row("3") + "\n" + row("7"));
  EXPECT_EQ(digits.labels, (std::vector<std::int64_t>{3, 7}));
  EXPECT_EQ(digits.pixels[70], 0.5F);
}

TEST_F(DigitsFile, CarriageReturnsAreAccepted) {
  EXPECT_EQ(read(row("3") + "\r\n" + row("7") + "\r\n").size(), 2U);
}

TEST_F(DigitsFile, AWordAmongThePixelsIsNamedByRowAndColumn) {
  EXPECT_EQ(refusal(row("1") + "\n" + replace_column(row("2"), 17, "many") + "\n"),
            at(2, 17) + "found 'many', expected a pixel from 0 to 16");
}

TEST_F(DigitsFile, APixelThatIsTooBrightIsNamed) {
  EXPECT_EQ(refusal(replace_column(row("2"), 64, "17")),
            at(1, 64) + "found '17', expected a pixel from 0 to 16");
}

TEST_F(DigitsFile, ALabelThatIsNoDigitIsNamed) {
  EXPECT_EQ(refusal(row("10") + "\n"), at(1, 65) + "found '10', expected a label from 0 to 9");
}

TEST_F(DigitsFile, AnEmptyValueIsNamed) {
  EXPECT_EQ(refusal(replace_column(row("2"), 5, "")), at(1, 5) + "found '', expected a pixel from 0 to 16");
}

TEST_F(DigitsFile, AShortRowIsNamed) {
  EXPECT_EQ(refusal(row("1") + "\n1,2,3\n"), at(2, 4) + "found the end of the row, expected 65 values");
}

TEST_F(DigitsFile, ALongRowIsNamed) {
  EXPECT_EQ(refusal(row("1") + ",5\n"), at(1, 66) + "found '5', expected the end of the row");
}

TEST_F(DigitsFile, AnEmptyFileIsRefused) {
  EXPECT_EQ(refusal(""), "the data file '" + path().string() + "' holds no rows");
}

TEST_F(DigitsFile, AMissingFileIsNamed) {
  try {
    (void)read_digits(dir_ / "absent.csv");
    FAIL() << "read a file that does not exist";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(e.what()).find((dir_ / "absent.csv").string()), std::string::npos);
  }
}

TEST_F(DigitsFile, AFolderIsNoData) {
  try {
    (void)read_digits(dir_.path());
    FAIL() << "read a folder";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage) << e.what();
  }
}

TEST_F(DigitsFile, CutOffGzipIsNotTakenForTheWholeFile) {
  const std::string whole = read_file(RANKLOG_DIGITS);
  write_file(path(), whole.substr(0, whole.size() / 2));
  try {
    (void)read_digits(path());
    FAIL() << "read half a file";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage) << e.what();
    EXPECT_NE(std::string(e.what()).find(path().string()), std::string::npos);
  }
}

TEST(DigitsSplit, EveryImageIsInExactlyOnePart) {
  const Digits all = read_digits(RANKLOG_DIGITS);
  const DigitsSplit split = split_digits(all);
  EXPECT_EQ(split.train.size(), 1438U);
  EXPECT_EQ(split.test.size(), 359U);
  const auto images = [](const Digits& digits) {
    std::multiset<std::vector<float>> set;
    for (std::size_t i = 0; i < digits.size(); ++i) {
      const auto first = digits.pixels.begin() + static_cast<std::ptrdiff_t>(i * Digits::kPixels);
      set.emplace(first, first + Digits::kPixels);
    }
    return set;
  };
  std::multiset<std::vector<float>> joined = images(split.train);
  joined.merge(images(split.test));
  EXPECT_EQ(joined, images(all));
}

TEST(DigitsSplit, IsTheSameEveryTime) {
  const Digits all = read_digits(RANKLOG_DIGITS);
  EXPECT_EQ(split_digits(all).test.labels, split_digits(all).test.labels);
}

}  // namespace
}  // namespace ranklog::test
