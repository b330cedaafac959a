#include "ranklog/cli/output.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ranklog::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using sql::Blob;
using sql::SqlValue;

std::string print(OutputFormat format, const std::vector<std::string>& names,
                  const std::vector<std::vector<SqlValue>>& rows) {
  std::ostringstream out;
  const auto printer = make_printer(format, out, Terminal{});
  printer->columns(names);
  for (const auto& row : rows) printer->row(row);
  printer->end();
  return out.str();
}

const std::vector<std::string> names_of_two{"a", "b \"c\""};
const std::vector<std::vector<SqlValue>> awkward_rows{
    {std::int64_t{9007199254740993}, std::string("x,\"y\"\nz")},
    {0.1, std::monostate()},
    {kInfinity, Blob{std::string("\x00\xff", 2)}},
    {std::string(), std::int64_t{-1}},
};

TEST(Output, JsonIsReadByAnotherParserWithNothingLost) {
  const auto json = nlohmann::json::parse(print(OutputFormat::kJson, names_of_two, awkward_rows));
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[0]["a"].get<std::int64_t>(), 9007199254740993);
  EXPECT_EQ(json[0]["b \"c\""], "x,\"y\"\nz");
  EXPECT_EQ(json[1]["a"].get<double>(), 0.1);
  EXPECT_TRUE(json[1]["b \"c\""].is_null());
  EXPECT_EQ(json[2]["a"], "Infinity");
  EXPECT_EQ(json[2]["b \"c\""], "00ff");
  EXPECT_EQ(json[3]["a"], "");
}

TEST(Output, JsonOfNoRowsIsAnEmptyArray) {
  EXPECT_EQ(print(OutputFormat::kJson, names_of_two, {}), "[]\n");
  EXPECT_EQ(print(OutputFormat::kNdjson, names_of_two, {}), "");
  EXPECT_EQ(print(OutputFormat::kCsv, names_of_two, {}), "a,\"b \"\"c\"\"\"\n");
  EXPECT_EQ(print(OutputFormat::kTable, names_of_two, {}), "a  b \"c\"\n");
}

TEST(Output, NdjsonHasOneObjectALine) {
  EXPECT_EQ(print(OutputFormat::kNdjson, {"n", "x"}, {{std::int64_t{1}, -kInfinity}, {std::int64_t{2}, 0.5}}),
            "{\"n\":1,\"x\":\"-Infinity\"}\n{\"n\":2,\"x\":0.5}\n");
}

TEST(Output, CsvTellsNullFromTheEmptyText) {
  EXPECT_EQ(print(OutputFormat::kCsv, names_of_two, awkward_rows),
            "a,\"b \"\"c\"\"\"\n"
            "9007199254740993,\"x,\"\"y\"\"\nz\"\n"
            "0.1,\n"
            "Infinity,00ff\n"
            "\"\",-1\n");
}

TEST(Output, TablesAlignNumbersRightAndShowNull) {
  EXPECT_EQ(print(OutputFormat::kTable, {"key", "value"},
                  {{std::string("loss"), 0.25}, {std::string("accuracy"), std::monostate()}}),
            "key       value\n"
            "loss       0.25\n"
            "accuracy   NULL\n");
}

TEST(Output, ALongTableIsPrintedInBlocksWithoutLosingRows) {
  std::vector<std::vector<SqlValue>> rows;
  for (std::int64_t i = 0; i < 2500; ++i) rows.push_back({i});
  const std::string text = print(OutputFormat::kTable, {"n"}, rows);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2500 + 3 /* titles */ + 2 /* blank lines */);
}

}  // namespace
}  // namespace ranklog::cli
