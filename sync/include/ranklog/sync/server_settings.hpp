#pragma once
// Which server to talk to and as whom, found where W&B's own tools find it.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "ranklog/sync/environment.hpp"

namespace ranklog::sync {

struct ServerSettings {
  std::string base_url;  // of the API, without a trailing '/'
  std::string app_url;   // of the web pages, for links
  std::string entity;    // empty: the server's default for the key
  std::string username;  // attributes runs to a person when a service account's key is used
  std::string email;
  std::chrono::seconds graphql_timeout{30};
  bool verify_tls = true;
  std::string ca_file;  // empty: the system's certificates
};

// Environment over ./wandb/settings over ~/.config/wandb/settings over defaults (protocol page 1.3). Throws
// Error (kUsage) for an unusable address or number, naming the variable or file that holds it.
[[nodiscard]] ServerSettings find_server(const Environment& environment);

// The web address that belongs to an API address: https://api.wandb.ai -> https://wandb.ai.
[[nodiscard]] std::string app_url_of(std::string_view base_url);

struct Credentials {
  std::string api_key;  // goes into the Authorization header of the base URL and nowhere else
  std::string source;   // "WANDB_API_KEY" or the netrc file's path, for messages
};

// WANDB_API_KEY, then the netrc entry of the server's host and port. Throws Error (kUnauthorized) that names
// the places that were looked at, or what is wrong with the shape of the key; never the key itself.
[[nodiscard]] Credentials find_credentials(const ServerSettings& server, const Environment& environment);

// Why a text cannot be an API key; empty if it can (protocol page 1.2).
[[nodiscard]] std::string api_key_fault(std::string_view key);

// The password of `host` (with its port, as in the URL) in the text of a netrc file, else of its default
// entry. Tokens may be quoted; comments and macros are skipped.
[[nodiscard]] std::optional<std::string> netrc_password(std::string_view text, std::string_view host);

// A key of section [default] of a settings file.
[[nodiscard]] std::optional<std::string> settings_value(std::string_view text, std::string_view key);

}  // namespace ranklog::sync
