#include "environment.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

namespace ranklog {

EnvLookup process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* text = std::getenv(std::string(name).c_str());
    if (text == nullptr) return std::nullopt;
    return std::string(text);
  };
}

namespace writer {

std::optional<std::string> lookup(const EnvLookup& environment, std::string_view name) {
  auto text = environment(name);
  if (text && text->empty()) text.reset();
  return text;
}

std::optional<NamedText> lookup_any(const EnvLookup& environment,
                                    std::initializer_list<std::string_view> names) {
  for (const auto name : names) {
    if (auto text = lookup(environment, name)) return NamedText{std::string(name), std::move(*text)};
  }
  return std::nullopt;
}

bool is_true(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower == "1" || lower == "true" || lower == "yes" || lower == "on";
}

std::optional<int> parse_count(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string> split_at_commas(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start < list.size();) {
    const auto end = std::min(list.find(',', start), list.size());
    const auto first = list.find_first_not_of(' ', start);
    if (first < end) {
      const auto last = list.find_last_not_of(' ', end - 1);
      parts.push_back(list.substr(first, last - first + 1));
    }
    start = end + 1;
  }
  return parts;
}

}  // namespace writer
}  // namespace ranklog
