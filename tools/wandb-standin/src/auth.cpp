#include "auth.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "api_error.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

constexpr std::size_t kMinKeyLength = 40;

bool is_word(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
}

// User and password of a Basic header.
std::optional<std::pair<std::string, std::string>> basic_credentials(const std::string& header) {
  static constexpr std::string_view kScheme = "Basic ";
  if (!header.starts_with(kScheme)) return std::nullopt;
  const auto decoded = base64_decode(std::string_view(header).substr(kScheme.size()));
  if (!decoded) return std::nullopt;
  const std::size_t colon = decoded->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return std::pair(decoded->substr(0, colon), decoded->substr(colon + 1));
}

}  // namespace

bool has_key_shape(const std::string& key) {
  const auto segments = split(key, '.');
  if (segments.size() == 3) return std::all_of(segments.begin(), segments.end(), is_word);
  const std::size_t dash = key.find('-');
  const std::string checked = dash == std::string::npos ? key : key.substr(dash + 1);
  return is_word(checked) && checked.size() >= kMinKeyLength;
}

void check_authorization(const std::string& header, const std::string& expected) {
  if (header.empty()) throw ApiError(401, "user is not logged in");
  const auto credentials = basic_credentials(header);
  if (!credentials || credentials->first != "api") {
    throw ApiError(401, "the Authorization header is not Basic for the user \"api\"");
  }
  const bool right = expected.empty() ? has_key_shape(credentials->second) : credentials->second == expected;
  if (!right) throw ApiError(401, "invalid API key");
}

std::string describe_authorization(const std::string& header) {
  if (header.empty()) return "none";
  const auto credentials = basic_credentials(header);
  if (!credentials) return "not Basic";
  return "Basic, user " + credentials->first + ", key of " + std::to_string(credentials->second.size()) +
         " characters";
}

}  // namespace ranklog::standin
