#include "loose_json.hpp"

#include <array>

namespace ranklog::standin {
namespace {

// The length of the bare token that starts here, or 0.
std::size_t bare_token_length(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kTokens = {"NaN", "Infinity", "-Infinity"};
  for (const std::string_view token : kTokens) {
    if (text.starts_with(token)) return token.size();
  }
  return 0;
}

// One past the end of the string literal that starts at `begin`.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return text.size();
}

}  // namespace

std::string quote_bare_tokens(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  std::size_t i = 0;
  while (i < text.size()) {
    if (text[i] == '"') {
      const std::size_t end = end_of_string(text, i);
      out += text.substr(i, end - i);
      i = end;
    } else if (const std::size_t length = bare_token_length(text.substr(i)); length > 0) {
      out.append("\"").append(text.substr(i, length)).append("\"");
      i += length;
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::optional<Json> parse_loose(std::string_view text) {
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) parsed = Json::parse(quote_bare_tokens(text), nullptr, false);
  if (parsed.is_discarded()) return std::nullopt;
  return parsed;
}

}  // namespace ranklog::standin
