#include "graphql_execute.hpp"

#include <algorithm>

namespace ranklog::standin {
namespace {

// Does `value` fit the scalar type? Input objects, enums and unknown scalars are left to the resolvers.
bool fits_scalar(const std::string& type, const Json& value) {
  if (type == "String" || type == "ID" || type == "JSONString") return value.is_string();
  if (type == "Int" || type == "Int64" || type == "Duration") return value.is_number_integer();
  if (type == "Float") return value.is_number();
  if (type == "Boolean") return value.is_boolean();
  return true;
}

bool fits(std::string type, const Json& value) {
  const bool required = !type.empty() && type.back() == '!';
  if (required) type.pop_back();
  if (value.is_null()) return !required;
  if (type.empty() || type.front() != '[') return fits_scalar(type, value);
  const std::string element = type.substr(1, type.size() - 2);
  if (!value.is_array()) return fits(element, value);  // GraphQL reads one value as a list of one
  return std::all_of(value.begin(), value.end(), [&](const Json& one) { return fits(element, one); });
}

class Executor {
 public:
  Executor(const Document& document, const Operation& operation, const Json& given)
      : document_(document), operation_(operation) {
    for (const VariableDefinition& variable : operation.variables) take_variable(variable, given);
  }

  Json run(const ObjectPtr& root) { return select(*root, operation_.selections, 0); }

 private:
  static constexpr int kMaxDepth = 64;  // fragments can name each other in a circle

  void take_variable(const VariableDefinition& variable, const Json& given) {
    const bool is_given = given.is_object() && given.contains(variable.name);
    Json value = is_given ? given[variable.name] : variable.default_value.value_or(Json(nullptr));
    if (!fits(variable.type, value)) {
      throw ApiError(400, "Variable \"$" + variable.name + "\" of type \"" + variable.type +
                              "\" got invalid value " +
                              value.dump(-1, ' ', true, Json::error_handler_t::replace));
    }
    // An absent variable leaves its argument absent, which differs from null.
    if (is_given || variable.default_value) values_[variable.name] = std::move(value);
    declared_.push_back(variable.name);
  }

  Json select(const Object& object, const std::vector<Selection>& selections, int depth) {
    Json out = Json::object();
    select_into(out, object, selections, depth);
    return out;
  }

  void select_into(Json& out, const Object& object, const std::vector<Selection>& selections, int depth) {
    if (depth > kMaxDepth) throw ApiError(400, "the query nests too deep");
    for (const Selection& selection : selections) {
      if (!wanted(selection)) continue;
      if (selection.kind == Selection::Kind::kField) {
        out[selection.key] = resolve(object, selection, depth);
      } else if (selection.kind == Selection::Kind::kInline) {
        if (object.is(selection.name)) select_into(out, object, selection.selections, depth + 1);
      } else {
        const auto fragment = document_.fragments.find(selection.name);
        if (fragment == document_.fragments.end()) {
          throw ApiError(400, "Unknown fragment \"" + selection.name + "\".");
        }
        if (object.is(fragment->second.type)) {
          select_into(out, object, fragment->second.selections, depth + 1);
        }
      }
    }
  }

  bool wanted(const Selection& selection) {
    for (const Directive& directive : selection.directives) {
      const Json condition = substitute(directive.condition);
      if (!condition.is_boolean()) throw ApiError(400, "a directive's 'if' must be a Boolean");
      if (condition.get<bool>() != directive.include) return false;
    }
    return true;
  }

  Json resolve(const Object& object, const Selection& selection, int depth) {
    if (selection.name == "__typename") return object.type();
    const Object::Field* field = object.find(selection.name);
    if (field == nullptr) {
      throw ApiError(400, "Cannot query field \"" + selection.name + "\" on type \"" + object.type() + "\".");
    }
    const Json arguments = substitute(selection.arguments);
    for (const auto& [name, value] : arguments.items()) {
      if (std::find(field->arguments.begin(), field->arguments.end(), name) == field->arguments.end()) {
        throw ApiError(400, "Unknown argument \"" + name + "\" on field \"" + object.type() + "." +
                                selection.name + "\".");
      }
    }
    return render(field->resolve(arguments), object, selection, depth);
  }

  Json render(const Node& node, const Object& parent, const Selection& selection, int depth) {
    const bool is_null = node.is_scalar() ? node.scalar().is_null() : !node.is_list() && !node.object();
    if (is_null) return nullptr;
    if (node.is_scalar() != selection.selections.empty()) {
      throw ApiError(400, "Field \"" + selection.name + "\" of type \"" + parent.type() + "\" must" +
                              (node.is_scalar() ? " not" : "") + " have a selection of subfields.");
    }
    if (node.is_scalar()) return node.scalar();
    if (!node.is_list()) return select(*node.object(), selection.selections, depth + 1);
    Json list = Json::array();
    for (const ObjectPtr& one : node.list()) {
      list.push_back(one ? select(*one, selection.selections, depth + 1) : Json(nullptr));
    }
    return list;
  }

  // Arguments with variables put in. A variable that was not given drops its object field.
  Json substitute(const Json& value) {
    if (value.is_array()) {
      Json list = Json::array();
      for (const Json& one : value) list.push_back(substitute(one));
      return list;
    }
    if (!value.is_object()) return value;
    if (value.contains(kVariableMark)) return variable(value[kVariableMark]).value_or(Json(nullptr));
    Json out = Json::object();
    for (const auto& [name, inner] : value.items()) {
      const bool absent =
          inner.is_object() && inner.contains(kVariableMark) && !variable(inner[kVariableMark]);
      if (!absent) out[name] = substitute(inner);
    }
    return out;
  }

  std::optional<Json> variable(const std::string& name) {
    if (std::find(declared_.begin(), declared_.end(), name) == declared_.end()) {
      throw ApiError(400,
                     "Variable \"$" + name + "\" is not defined by operation \"" + operation_.name + "\".");
    }
    const auto found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    return found->second;
  }

  const Document& document_;
  const Operation& operation_;
  std::vector<std::string> declared_;
  std::map<std::string, Json> values_;
};

}  // namespace

Json execute(const Document& document, const Operation& operation, const Json& variables,
             const ObjectPtr& root) {
  return Executor(document, operation, variables).run(root);
}

}  // namespace ranklog::standin
