#include "history_line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ranklog::sync {
namespace {

constexpr std::int64_t kTimeNs = 1'700'000'001'500'000'000;
constexpr std::int64_t kRuntimeNs = 1'500'000'000;
const std::string kHead = R"("_runtime":1.5,"_timestamp":1700000001.5)";

// The line of a row at step 3 with these cells, and the same whatever the order in which they come.
std::string line_of(const std::vector<std::pair<KeyPath, ValueView>>& cells, std::int64_t step = 3) {
  std::vector<KeyPath> keys;
  HistoryRow row;
  row.step = step;
  row.time_ns = kTimeNs;
  for (const auto& [key, value] : cells) {
    row.cells.push_back({static_cast<std::uint32_t>(keys.size()), value});
    keys.push_back(key);
  }
  HistoryLinePrinter printer(keys);
  std::string line;
  printer.append(line, row, kRuntimeNs);
  std::ranges::reverse(row.cells);
  std::string reversed;
  printer.append(reversed, row, kRuntimeNs);
  EXPECT_EQ(line, reversed);
  return line;
}

KeyPath flat(const char* name) {
  return KeyPath::flat(name);
}

TEST(HistoryLineTest, StepIsAnIntegerTokenHoweverLarge) {
  EXPECT_EQ(line_of({}, 1'000'000), R"({"_step":1000000,)" + kHead + "}");
  EXPECT_EQ(line_of({}, 9'007'199'254'740'993), R"({"_step":9007199254740993,)" + kHead + "}");
}

TEST(HistoryLineTest, NumbersNaNAndInfinitiesAreTokens) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      line_of({{flat("a"), std::nan("")},
               {flat("b"), inf},
               {flat("c"), -inf},
               {flat("d"), 0.1},
               {flat("e"), 0.1F},
               {flat("f"), std::int64_t{9'007'199'254'740'993}},
               {flat("g"), 5.0}}),
      R"({"_step":3,)" + kHead +
          R"(,"a":NaN,"b":Infinity,"c":-Infinity,"d":0.1,"e":0.10000000149011612,"f":9007199254740993,"g":5})");
}

TEST(HistoryLineTest, StringsBoolsNullAndJsonKeepTheirKind) {
  EXPECT_EQ(line_of({{flat("s"), "a\"\n\xFF"},
                     {flat("t"), true},
                     {flat("u"), nullptr},
                     {flat("v"), ValueView::json("{\"_type\":\"histogram\",\n\"bins\":[1]}")}}),
            R"({"_step":3,)" + kHead + ",\"s\":\"a\\\"\\n\xEF\xBF\xBD\"" +
                R"(,"t":true,"u":null,"v":{"_type":"histogram", "bins":[1]}})");
}

TEST(HistoryLineTest, KeyPathsNestAndDottedNamesStayOneName) {
  EXPECT_EQ(
      line_of({{flat("z"), 1},
               {KeyPath{{"a", "b", "c"}}, 2},
               {KeyPath{{"a", "b", "d"}}, 3},
               {KeyPath{{"a", "e"}}, 4},
               {flat("a.b"), 5},
               {KeyPath{{"m", "x"}}, 6},
               {KeyPath{{"n", "x"}}, 7}}),
      R"({"_step":3,)" + kHead + R"(,"a":{"b":{"c":2,"d":3},"e":4},"a.b":5,"m":{"x":6},"n":{"x":7},"z":1})");
}

TEST(HistoryLineTest, ValueWhereAPathNeedsAnObjectLosesNothing) {
  EXPECT_EQ(line_of({{flat("a"), 1}, {KeyPath{{"a", "b"}}, 2}, {KeyPath{{"a", "c"}}, 3}, {flat("b"), 4}}),
            R"({"_step":3,)" + kHead + R"(,"a":1,"b":4,"a.b":2,"a.c":3})");
}

TEST(HistoryLineTest, NamesOfAnyKindAreQuoted) {
  EXPECT_EQ(line_of({{flat(""), 1}, {flat("loss/\"train\""), 2}, {flat("\xF0\x9F\x94\xA5"), 3}}),
            R"({"_step":3,)" + kHead + ",\"\":1,\"loss/\\\"train\\\"\":2,\"\xF0\x9F\x94\xA5\":3}");
}

}  // namespace
}  // namespace ranklog::sync
