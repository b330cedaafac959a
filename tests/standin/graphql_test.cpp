// The GraphQL reader and executor, without a server.

#include <gtest/gtest.h>

#include "graphql_execute.hpp"

namespace ranklog::standin {
namespace {

ObjectPtr sample_root() {
  auto dog = std::make_shared<Object>("Dog", std::vector<std::string>{"Pet"});
  dog->value("name", "Rex");
  dog->value("barks", true);
  auto root = std::make_shared<Object>("Query");
  root->field("pet", {}, [dog](const Json&) { return Node(ObjectPtr(dog)); });
  root->field("nobody", {}, [](const Json&) { return Node(ObjectPtr()); });
  root->field("echo", {"value", "other"}, [](const Json& arguments) { return Node(Json(arguments.dump())); });
  return root;
}

Json run(const std::string& text, const Json& variables = Json::object(), const std::string& name = "") {
  const Document document = parse_document(text);
  return execute(document, document.operation(name), variables, sample_root());
}

std::string refusal(const std::string& text, const Json& variables = Json::object()) {
  try {
    static_cast<void>(run(text, variables));
  } catch (const ApiError& error) {
    return error.what();
  }
  return "";
}

TEST(GraphQl, AliasesFragmentsAndTypeConditionsShapeTheAnswer) {
  const Json data = run(R"(
    query Q { animal: pet { __typename ...Names ... on Cat { barks } ... on Pet { loud: barks } } }
    fragment Names on Dog { name })");
  EXPECT_EQ(data, Json::parse(R"({"animal": {"__typename": "Dog", "name": "Rex", "loud": true}})"));
}

TEST(GraphQl, IncludeAndSkipFollowVariables) {
  const std::string query = "query Q($a: Boolean!) { pet { name @include(if: $a) barks @skip(if: $a) } }";
  EXPECT_EQ(run(query, {{"a", true}}), Json::parse(R"({"pet": {"name": "Rex"}})"));
  EXPECT_EQ(run(query, {{"a", false}}), Json::parse(R"({"pet": {"barks": true}})"));
}

TEST(GraphQl, ArgumentsTakeEveryLiteral) {
  const Json data = run(R"({ echo(value: {a: [1, -2.5, "x\n\u00e9", true, null, ENUM], b: """c"d"""}) })");
  EXPECT_EQ(Json::parse(data["echo"].get<std::string>()),
            Json::parse(R"({"value": {"a": [1, -2.5, "x\n\u00e9", true, null, "ENUM"], "b": "c\"d"}})"));
}

TEST(GraphQl, AVariableThatWasNotGivenIsAbsentAndDiffersFromNull) {
  const std::string query = "query Q($a: Int, $b: Int = 7) { echo(value: {a: $a, b: $b}, other: $a) }";
  EXPECT_EQ(run(query)["echo"], R"({"value":{"b":7}})");
  EXPECT_EQ(run(query, {{"a", nullptr}})["echo"], R"({"other":null,"value":{"a":null,"b":7}})");
}

TEST(GraphQl, ANullObjectIsNull) {
  EXPECT_EQ(run("{ nobody { name } }"), Json::parse(R"({"nobody": null})"));
}

TEST(GraphQl, ChoosesTheNamedOperation) {
  const std::string two = "query A { pet { name } } query B { pet { barks } }";
  EXPECT_TRUE(run(two, {}, "B")["pet"].contains("barks"));
  EXPECT_NE(refusal(two).find("operation name"), std::string::npos);
}

TEST(GraphQl, RefusesWhatTheSchemaDoesNotHave) {
  EXPECT_NE(refusal("{ pet { wings } }").find("\"wings\" on type \"Dog\""), std::string::npos);
  EXPECT_NE(refusal("{ echo(size: 1) }").find("Unknown argument \"size\""), std::string::npos);
  EXPECT_NE(refusal("{ pet }").find("must have a selection"), std::string::npos);
  EXPECT_NE(refusal("{ pet { name { x } } }").find("must not have a selection"), std::string::npos);
  EXPECT_NE(refusal("{ pet { ...Gone } }").find("Unknown fragment"), std::string::npos);
  EXPECT_NE(refusal("{ echo(value: $v) }").find("not defined"), std::string::npos);
}

TEST(GraphQl, RefusesVariablesOfTheWrongType) {
  const auto tell = [](const std::string& type, const Json& value) {
    return refusal("query Q($v: " + type + ") { echo(value: $v) }", {{"v", value}});
  };
  EXPECT_EQ(tell("Int64!", 5), "");
  EXPECT_NE(tell("Int64!", "5"), "");
  EXPECT_NE(tell("String!", nullptr), "");
  EXPECT_EQ(tell("String", nullptr), "");
  EXPECT_EQ(tell("[String!]!", Json::array({"a"})), "");
  EXPECT_NE(tell("[String!]!", Json::array({"a", nullptr})), "");
  EXPECT_NE(tell("JSONString", Json::object()), "");
}

TEST(GraphQl, NamesTheLineOfASyntaxError) {
  EXPECT_NE(refusal("{\n pet {\n").find("line 3"), std::string::npos);
  EXPECT_NE(refusal("").find("no operation"), std::string::npos);
  EXPECT_NE(refusal("{ echo(value: \"x) }").find("without end"), std::string::npos);
}

}  // namespace
}  // namespace ranklog::standin
