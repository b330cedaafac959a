#pragma once
// What resolvers hand to the executor: typed objects whose fields are worked out when they are asked for.

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api_error.hpp"

namespace ranklog::standin {

class Object;
using ObjectPtr = std::shared_ptr<const Object>;

// One resolved field: a scalar (any JSON, also a list of scalars), an object, or a list of objects.
// An empty ObjectPtr is null.
class Node {
 public:
  Node(Json scalar) : scalar_(std::move(scalar)) {}  // NOLINT(google-explicit-constructor)
  Node(ObjectPtr object) : kind_(Kind::kObject), objects_{std::move(object)} {}         // NOLINT
  Node(std::vector<ObjectPtr> list) : kind_(Kind::kList), objects_(std::move(list)) {}  // NOLINT

  [[nodiscard]] bool is_scalar() const noexcept { return kind_ == Kind::kScalar; }
  [[nodiscard]] bool is_list() const noexcept { return kind_ == Kind::kList; }
  [[nodiscard]] const Json& scalar() const noexcept { return scalar_; }
  [[nodiscard]] const ObjectPtr& object() const noexcept { return objects_.front(); }
  [[nodiscard]] const std::vector<ObjectPtr>& list() const noexcept { return objects_; }

 private:
  enum class Kind { kScalar, kObject, kList };

  Kind kind_ = Kind::kScalar;
  Json scalar_;
  std::vector<ObjectPtr> objects_;
};

using Resolver = std::function<Node(const Json& arguments)>;

class Object {
 public:
  struct Field {
    std::vector<std::string> arguments;  // the names that the field knows
    Resolver resolve;
  };

  explicit Object(std::string type, std::vector<std::string> interfaces = {})
      : type_(std::move(type)), interfaces_(std::move(interfaces)) {}

  // A plain value.
  Object& value(const std::string& name, Json json) {
    fields_[name] = {{}, [kept = std::move(json)](const Json&) { return Node(kept); }};
    return *this;
  }
  // Worked out on demand.
  Object& field(const std::string& name, std::vector<std::string> arguments, Resolver resolve) {
    fields_[name] = {std::move(arguments), std::move(resolve)};
    return *this;
  }

  [[nodiscard]] const std::string& type() const noexcept { return type_; }
  [[nodiscard]] const Field* find(const std::string& name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool is(const std::string& type) const {
    if (type.empty() || type == type_) return true;
    for (const std::string& one : interfaces_) {
      if (one == type) return true;
    }
    return false;
  }

 private:
  std::string type_;
  std::vector<std::string> interfaces_;
  std::map<std::string, Field> fields_;
};

// Wraps `nodes` in edges { node cursor }, pageInfo and totalCount, and pages them by the arguments `first`
// and `after` (cursors are indices).
[[nodiscard]] ObjectPtr connection(const std::string& type, std::vector<ObjectPtr> nodes,
                                   const Json& arguments);
// Plain pairs as an object.
[[nodiscard]] ObjectPtr plain_object(const std::string& type, const Json& pairs);

}  // namespace ranklog::standin
