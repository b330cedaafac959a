// Readers of two small text formats: netrc and W&B's settings file.
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include "ranklog/sync/server_settings.hpp"

namespace ranklog::sync {
namespace {

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

class NetrcTokens {
 public:
  explicit NetrcTokens(std::string_view text) : text_(text) {}

  std::optional<std::string> next() {
    skip_blank();
    if (at_ == text_.size()) return std::nullopt;
    std::string token;
    char quote = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote == 0 && is_space(c)) break;
      if (c == '\\' && quote != '\'' && at_ + 1 < text_.size()) {
        token.push_back(text_[++at_]);
      } else if (c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else {
        token.push_back(c);
      }
    }
    return token;
  }

  // A macro's text ends at the first empty line.
  void skip_macro() {
    const std::size_t end = text_.find("\n\n", at_);
    at_ = end == std::string_view::npos ? text_.size() : end;
  }

 private:
  void skip_blank() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        const std::size_t end = text_.find('\n', at_);
        at_ = end == std::string_view::npos ? text_.size() : end;
      } else if (is_space(text_[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<std::string> netrc_password(std::string_view text, std::string_view host) {
  NetrcTokens tokens(text);
  enum class Entry { kNone, kHost, kDefault, kOther } entry = Entry::kNone;
  std::optional<std::string> of_default;
  while (auto token = tokens.next()) {
    if (*token == "machine") {
      entry = tokens.next().value_or("") == host ? Entry::kHost : Entry::kOther;
    } else if (*token == "default") {
      entry = Entry::kDefault;
    } else if (*token == "macdef") {
      tokens.skip_macro();
    } else if (*token == "password") {
      auto password = tokens.next();
      if (entry == Entry::kHost) return password;
      if (entry == Entry::kDefault && !of_default) of_default = password;
    } else if (*token == "login" || *token == "account") {
      (void)tokens.next();
    }
  }
  return of_default;
}

std::optional<std::string> settings_value(std::string_view text, std::string_view key) {
  bool in_default = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.starts_with('[')) in_default = line == "[default]";
    if (!in_default || line.starts_with('#') || line.starts_with(';')) continue;
    const std::size_t sign = line.find_first_of("=:");
    if (sign == std::string_view::npos || trimmed(line.substr(0, sign)) != key) continue;
    const std::string_view value = trimmed(line.substr(sign + 1));
    if (!value.empty()) return std::string(value);
  }
  return std::nullopt;
}

}  // namespace ranklog::sync
