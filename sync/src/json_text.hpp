#pragma once
// JSON as text, with the tokens NaN, Infinity and -Infinity that W&B's documents may hold.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ranklog/schema/key_path.hpp"

namespace ranklog::sync {

// The same document for a strict reader: the three tokens become null.
[[nodiscard]] std::string strict_json(std::string_view text);

// The same value as YAML 1.1 in flow style: .nan and .inf, and a '.' in every float (1e-05 would be a
// string).
[[nodiscard]] std::string yaml_flow(std::string_view text);

// "name" with quotes, then ':'.
void append_member_name(std::string& out, std::string_view name);

// Nanoseconds as decimal seconds without rounding: 1500000000 -> 1.5.
void append_seconds(std::string& out, std::int64_t ns);

// An object built from key paths. Members are printed by name.
class JsonTree {
 public:
  // `json` is the value's text; a later value for the same path wins. Where a path leads through another
  // value, or ends at an object, the whole path becomes one flat name: both values stay.
  void set(const KeyPath& path, std::string json);
  void set(std::string_view name, std::string json) { set(KeyPath::flat(name), std::move(json)); }
  [[nodiscard]] std::string text() const;

 private:
  struct Node {
    std::map<std::string, std::unique_ptr<Node>, std::less<>> members;
    std::string json;  // if there are no members
  };
  static void print(std::string& out, const Node& node);

  Node root_;
};

}  // namespace ranklog::sync
