#include "secrets.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

namespace ranklog::writer {
namespace {

constexpr std::array<std::string_view, 21> kSecretNames{
    "api_key",       "apikey",        "password",      "passwd",      "passphrase",    "token",
    "access_token",  "auth_token",    "id_token",      "secret",      "client_secret", "secret_key",
    "access_key",    "private_key",   "credential",    "credentials", "authorization", "bearer",
    "refresh_token", "session_token", "encryption_key"};

// Endings that name nothing but secrets: whatever stands there is masked. A name that ends in "token" or
// "key" may be a tokenizer's, so its text decides.
constexpr std::array<std::string_view, 8> kSecretEndings{"api_key",    "apikey", "password",   "passwd",
                                                         "passphrase", "secret", "secret_key", "private_key"};

bool is_lower(char c) {
  return std::islower(static_cast<unsigned char>(c)) != 0;
}
bool is_upper(char c) {
  return std::isupper(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_letter(char c) {
  return is_lower(c) || is_upper(c);
}

// The last part of a dotted name, in snake case: "Optimizer.apiKey" and "--api-key" become "api_key".
std::string snake_case(std::string_view name) {
  const auto separator = name.find_last_of("./");
  if (separator != std::string_view::npos) name.remove_prefix(separator + 1);
  while (!name.empty() && name.front() == '-') name.remove_prefix(1);
  std::string snake;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i] == '-' || name[i] == ' ' ? '_' : name[i];
    if (i > 0 && is_upper(c) && is_lower(name[i - 1])) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return snake;
}

bool ends_in(std::string_view name, std::string_view ending) {
  return name.size() > ending.size() && name.ends_with(ending) &&
         name[name.size() - ending.size() - 1] == '_';
}

// At least 16 characters without spaces or brackets, of which some run mixes letters and digits.
bool looks_like_key(std::string_view text) {
  constexpr std::size_t kShortestKey = 16;
  constexpr std::size_t kShortestRun = 6;
  if (text.size() < kShortestKey || text.find_first_of(" \t\n<>[]|") != std::string_view::npos) return false;
  std::size_t letters = 0;
  std::size_t digits = 0;
  for (const char c : text) {
    if (!is_letter(c) && !is_digit(c)) letters = digits = 0;
    letters += is_letter(c) ? 1 : 0;
    digits += is_digit(c) ? 1 : 0;
    if (letters > 0 && digits > 0 && letters + digits >= kShortestRun) return true;
  }
  return false;
}

void mask_scalars(nlohmann::ordered_json& value) {
  if (value.is_array()) {
    std::for_each(value.begin(), value.end(), mask_scalars);
  } else if (value.is_primitive() && !value.is_null()) {
    value = kMask;
  }
}

std::string mask_assignment(const std::string& argument) {
  const auto separator = argument.find_first_of("=:");
  if (separator == std::string::npos) return argument;
  const std::string_view text = argument;
  if (!is_secret(text.substr(0, separator), text.substr(separator + 1))) return argument;
  return argument.substr(0, separator + 1) + std::string(kMask);
}

}  // namespace

bool is_secret(std::string_view name, std::string_view text) {
  if (text.empty()) return false;
  const std::string snake = snake_case(name);
  const auto ends = [&](std::string_view ending) { return ends_in(snake, ending); };
  if (std::find(kSecretNames.begin(), kSecretNames.end(), snake) != kSecretNames.end()) return true;
  if (std::any_of(kSecretEndings.begin(), kSecretEndings.end(), ends)) return true;
  const bool suspect = std::any_of(kSecretNames.begin(), kSecretNames.end(), ends) || ends("key");
  return suspect && looks_like_key(text);
}

void mask_secrets(std::string_view name, nlohmann::ordered_json& value) {
  if (value.is_string()) {
    if (is_secret(name, value.get_ref<const std::string&>())) value = kMask;
  } else if (value.is_object()) {
    for (auto member = value.begin(); member != value.end(); ++member) mask_secrets(member.key(), *member);
  } else if (value.is_array()) {
    if (is_secret(name, kMask)) mask_scalars(value);
    for (auto& element : value) mask_secrets(name, element);
  } else if (is_secret(name, kMask)) {  // the name alone decides: a number has no look
    mask_scalars(value);
  }
}

std::vector<std::string> mask_arguments(std::vector<std::string> arguments) {
  std::string previous_flag;
  for (auto& argument : arguments) {
    const bool is_flag = argument.starts_with('-');
    const bool is_assignment = argument.find_first_of("=:") != std::string::npos;
    // What follows a secret's flag is masked whole: a token may hold separators of its own.
    const bool masked = !is_flag && is_secret(previous_flag, argument);
    argument = masked ? std::string(kMask) : strip_credentials(mask_assignment(argument));
    previous_flag = is_flag && !is_assignment ? argument : "";
  }
  return arguments;
}

std::vector<std::string> secrets_of(char** environment) {
  constexpr std::size_t kShortest = 6;
  std::vector<std::string> secrets;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const auto text = entry.substr(equals + 1);
    if (text.size() >= kShortest && is_secret(entry.substr(0, equals), text)) secrets.emplace_back(text);
  }
  std::sort(secrets.begin(), secrets.end(), [](const auto& a, const auto& b) {
    return a.size() > b.size() || (a.size() == b.size() && a < b);
  });
  secrets.erase(std::unique(secrets.begin(), secrets.end()), secrets.end());
  return secrets;
}

std::string mask_texts(std::string text, const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets) {
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + kMask.size()))
      text.replace(at, secret.size(), kMask);
  }
  return text;
}

std::string strip_credentials(std::string_view text) {
  std::string stripped;
  for (;;) {
    const auto scheme = text.find("://");
    if (scheme == std::string_view::npos) return stripped.append(text);
    const auto host = scheme + 3;
    const auto at = text.substr(0, text.find_first_of("/ \t\n\"'", host)).rfind('@');
    stripped.append(text.substr(0, host));
    text.remove_prefix(at == std::string_view::npos || at < host ? host : at + 1);
  }
}

}  // namespace ranklog::writer
