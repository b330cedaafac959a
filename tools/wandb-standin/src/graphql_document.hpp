#pragma once
// A GraphQL request document as a tree. Covers what clients send: operations, fragments, variables with
// defaults, aliases, arguments of every literal kind, @include and @skip.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api_error.hpp"

namespace ranklog::standin {

// In argument values a variable stands as {"$": "<name>"}; "$" cannot be a GraphQL name.
inline constexpr const char* kVariableMark = "$";

struct Directive {
  bool include = true;  // false for @skip
  Json condition;
};

struct Selection {
  enum class Kind { kField, kSpread, kInline };

  Kind kind = Kind::kField;
  std::string name;  // the field, the fragment, or the type condition (may be empty)
  std::string key;   // what a field is called in the answer
  Json arguments = Json::object();
  std::vector<Directive> directives;
  std::vector<Selection> selections;
};

struct VariableDefinition {
  std::string name;
  std::string type;  // as written: "[String!]!"
  std::optional<Json> default_value;
};

struct Operation {
  std::string kind = "query";  // or "mutation"
  std::string name;            // empty for an anonymous one
  std::vector<VariableDefinition> variables;
  std::vector<Selection> selections;
};

struct Fragment {
  std::string type;
  std::vector<Selection> selections;
};

struct Document {
  std::vector<Operation> operations;
  std::map<std::string, Fragment> fragments;

  // The one called `name`, or the only one if `name` is empty. Throws ApiError(400).
  [[nodiscard]] const Operation& operation(const std::string& name) const;
};

// Throws ApiError(400) naming the line.
[[nodiscard]] Document parse_document(std::string_view text);

}  // namespace ranklog::standin
