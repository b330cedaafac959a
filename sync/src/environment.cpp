#include "ranklog/sync/environment.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace ranklog::sync {

Environment process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
  };
}

bool is_true(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 4> kWords = {"true", "1", "yes", "on"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return std::equal(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
    });
  });
}

}  // namespace ranklog::sync
