#include "ranklog/sync/url.hpp"

#include <algorithm>
#include <cctype>

#include "ranklog/schema/error.hpp"

namespace ranklog::sync {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

[[noreturn]] void refuse(std::string_view source) {
  throw Error(ErrorCode::kUsage, std::string(source) + " is not an address of the form https://host[:port]");
}

}  // namespace

std::string Url::host() const {
  if (netloc.starts_with('[')) return netloc.substr(0, netloc.find(']') + 1);
  return netloc.substr(0, netloc.find(':'));
}

std::string Url::text() const {
  return scheme + "://" + netloc + path;
}

Url parse_url(std::string_view text, std::string_view source) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) refuse(source);
  Url url;
  url.scheme = lower(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https") refuse(source);
  const std::string_view rest = text.substr(colon + 3);
  const std::size_t slash = rest.find('/');
  url.netloc = lower(rest.substr(0, slash));
  if (slash != std::string_view::npos) url.path = rest.substr(slash);
  // A password in the address would end up in messages.
  if (url.netloc.find('@') != std::string::npos) {
    throw Error(ErrorCode::kUsage, std::string(source) + " holds a user name or password",
                "give the key in WANDB_API_KEY instead");
  }
  const std::string port = url.netloc.substr(url.host().size());
  const bool bad_port = !port.empty() && (port.size() < 2 || port[0] != ':' ||
                                          port.find_first_not_of("0123456789", 1) != std::string::npos);
  const bool odd = std::any_of(text.begin(), text.end(),
                               [](unsigned char c) { return c <= ' ' || c == '?' || c == '#' || c == '\\'; });
  if (url.host().empty() || bad_port || odd) refuse(source);
  return url;
}

std::string percent_encode(std::string_view component) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(component.size());
  for (const char c : component) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(kHex[byte >> 4U]);
      out.push_back(kHex[byte & 15U]);
    }
  }
  return out;
}

}  // namespace ranklog::sync
