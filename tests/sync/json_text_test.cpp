#include "json_text.hpp"

#include <gtest/gtest.h>

namespace ranklog::sync {
namespace {

TEST(JsonTextTest, StrictReadersGetNullForTheThreeTokens) {
  EXPECT_EQ(strict_json(R"({"a":NaN,"b":[Infinity,-Infinity,1e5],"NaN":"NaN \" Infinity","c":-1})"),
            R"({"a":null,"b":[null,null,1e5],"NaN":"NaN \" Infinity","c":-1})");
  EXPECT_EQ(strict_json("\"unclosed \\"), "\"unclosed \\");
}

TEST(JsonTextTest, YamlReadersGetFloatsAsFloats) {
  EXPECT_EQ(yaml_flow("1e-05"), "1.0e-05");
  EXPECT_EQ(yaml_flow("1E5"), "1.0E+5");
  EXPECT_EQ(yaml_flow("-2.5e+16"), "-2.5e+16");
  EXPECT_EQ(yaml_flow(R"({"e":[NaN,-Infinity,Infinity,true,null,3],"s":"1e5"})"),
            R"({"e":[.nan,-.inf,.inf,true,null,3],"s":"1e5"})");
}

TEST(JsonTextTest, SecondsAreExact) {
  const struct {
    std::int64_t ns;
    const char* text;
  } kTable[] = {{0, "0"},
                {1'500'000'000, "1.5"},
                {1'700'000'000'123'456'789, "1700000000.123456789"},
                {1, "0.000000001"},
                {-1'500'000'000, "-1.5"},
                {-1, "-0.000000001"},
                {2'000'000'000, "2"}};
  for (const auto& row : kTable) {
    std::string out;
    append_seconds(out, row.ns);
    EXPECT_EQ(out, row.text);
  }
}

TEST(JsonTreeTest, PathsNestAndFlatNamesStayFlat) {
  JsonTree tree;
  tree.set(KeyPath{{"a", "b"}}, "1");
  tree.set(KeyPath{{"a", "c"}}, "2");
  tree.set("a.b", "3");
  EXPECT_EQ(tree.text(), R"({"a":{"b":1,"c":2},"a.b":3})");
}

TEST(JsonTreeTest, ValueInTheWayKeepsBothValues) {
  JsonTree below;
  below.set(KeyPath{{"a"}}, "1");
  below.set(KeyPath{{"a", "b"}}, "2");
  EXPECT_EQ(below.text(), R"({"a":1,"a.b":2})");
  JsonTree above;
  above.set(KeyPath{{"x", "a", "b"}}, "2");
  above.set(KeyPath{{"x", "a"}}, "1");
  EXPECT_EQ(above.text(), R"({"x":{"a":{"b":2}},"x.a":1})");
}

TEST(JsonTreeTest, EmptyTreeIsAnEmptyObject) {
  EXPECT_EQ(JsonTree().text(), "{}");
}

}  // namespace
}  // namespace ranklog::sync
