#pragma once
// A metric's key is a path of names: {"a": {"b": 1}} is logged under the path a, b. A flat key "a.b" is one
// name.

#include <string>
#include <string_view>
#include <vector>

namespace ranklog {

struct KeyPath {
  std::vector<std::string> names;  // at least one; a name may hold any UTF-8, the empty text included

  // The form that is shown, typed and stored: names joined by '.', with '\' before each '.' and '\' inside a
  // name. The path a, b is a.b; the flat key "a.b" is a\.b. Reversible.
  [[nodiscard]] std::string display() const;
  // Throws Error (kUsage) on a backslash that escapes nothing.
  static KeyPath parse(std::string_view display);
  // One name, whatever it holds: what log() is given.
  static KeyPath flat(std::string_view name) { return KeyPath{{std::string(name)}}; }

  friend bool operator==(const KeyPath&, const KeyPath&) = default;
};

// Names that callers may not log: _step, _runtime, _timestamp, _wandb (W&B writes them itself).
[[nodiscard]] bool is_reserved_name(std::string_view name) noexcept;

}  // namespace ranklog
