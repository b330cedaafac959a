#pragma once
// Reading a server's answers: anything may be missing or null.

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace ranklog::sync {

// The value at a path of keys; null where a part is missing.
inline const nlohmann::json& at_path(const nlohmann::json& value, std::initializer_list<const char*> path) {
  static const nlohmann::json kNull;
  const nlohmann::json* here = &value;
  for (const char* key : path) {
    if (!here->is_object()) return kNull;
    const auto found = here->find(key);
    if (found == here->end()) return kNull;
    here = &*found;
  }
  return *here;
}

inline std::string text_at(const nlohmann::json& value, std::initializer_list<const char*> path) {
  const nlohmann::json& found = at_path(value, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

inline std::uint64_t count_at(const nlohmann::json& value, std::initializer_list<const char*> path) {
  const nlohmann::json& found = at_path(value, path);
  return found.is_number() && found.get<double>() >= 0 ? found.get<std::uint64_t>() : 0;
}

// null for "", which the server would otherwise store.
inline nlohmann::json or_null(const std::string& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

}  // namespace ranklog::sync
