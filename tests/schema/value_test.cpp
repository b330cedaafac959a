#include "ranklog/schema/value.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace ranklog {
namespace {

std::string json_of(ValueView value) {
  std::string out;
  append_json(out, value);
  return out;
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(Value, JsonOfScalarsIsWhatWandbsHistoryLinesHave) {
  EXPECT_EQ(json_of(nullptr), "null");
  EXPECT_EQ(json_of(true), "true");
  EXPECT_EQ(json_of(false), "false");
  EXPECT_EQ(json_of(0.25), "0.25");
  EXPECT_EQ(json_of(1.0), "1");
  EXPECT_EQ(json_of(-0.0), "-0.0");
  EXPECT_EQ(json_of(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(json_of(-std::numeric_limits<double>::infinity()), "-Infinity");
  EXPECT_EQ(json_of(std::numeric_limits<double>::infinity()), "Infinity");
  EXPECT_EQ(json_of(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(json_of(std::int64_t{9007199254740993}), "9007199254740993");
  EXPECT_EQ(json_of(ValueView::json(R"({"_type":"histogram"})")), R"({"_type":"histogram"})");
}

TEST(Value, JsonOfAnyFiniteDoubleReadsBackToTheSameBits) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const double back = std::strtod(json_of(value).c_str(), nullptr);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(value)) << json_of(value);
  }
}

TEST(Value, JsonStringReadsBackInAnotherParser) {
  const std::string texts[] = {"",
                               "plain",
                               "quote\" back\\slash",
                               "new\nline\ttab\r\b\f",
                               "\x01\x1f\x7f",
                               "\xF0\x9F\x9A\x80 emoji, \xC3\xA9, \xE2\x82\xAC",
                               std::string("nul\0in", 6)};
  for (const std::string& text : texts) {
    EXPECT_EQ(nlohmann::json::parse(json_string(text)).get<std::string>(), text);
  }
}

TEST(Value, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(json_string("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(json_string("\xC0\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");                  // overlong
  EXPECT_EQ(json_string("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");  // surrogate
  EXPECT_EQ(json_string("\xE2\x82"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");                  // cut off
  // Whatever the bytes, the literal is valid JSON.
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (int k = 0; k < 12; ++k) bytes += static_cast<char>(random());
    ASSERT_TRUE(nlohmann::json::accept(json_string(bytes))) << json_string(bytes);
  }
}

TEST(Value, SameValueComparesKindAndBits) {
  const auto nan_a = ValueView::scalar(ValueKind::kFloat64, 0x7FF8000000000001);
  const auto nan_b = ValueView::scalar(ValueKind::kFloat64, 0x7FF8000000000002);
  EXPECT_TRUE(same_value(nan_a, nan_a));
  EXPECT_FALSE(same_value(nan_a, nan_b));
  EXPECT_FALSE(same_value(0.0, -0.0));
  EXPECT_FALSE(same_value(1.0, 1));
  EXPECT_FALSE(same_value("1", ValueView::json("1")));
  EXPECT_TRUE(same_value("text", std::string("text")));
  EXPECT_TRUE(same_value(nullptr, ValueView()));
}

}  // namespace
}  // namespace ranklog
