#pragma once
// The parts of an http(s) URL that matter here, and percent-encoding.

#include <string>
#include <string_view>

namespace ranklog::sync {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string netloc;  // host, or host:port when the URL names one; lower case
  std::string path;    // with its leading '/', or empty

  [[nodiscard]] std::string host() const;  // without the port
  [[nodiscard]] std::string text() const;
};

// Throws Error (kUsage) naming `source` for what is no http(s) URL with a host, or carries a user or
// password.
[[nodiscard]] Url parse_url(std::string_view text, std::string_view source);

// For one component of a path: everything but A-Z a-z 0-9 - _ . ~ is encoded.
[[nodiscard]] std::string percent_encode(std::string_view component);

}  // namespace ranklog::sync
