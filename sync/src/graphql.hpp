#pragma once
// W&B's GraphQL endpoint: one call, its answer, and its refusals in words.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "ranklog/schema/error.hpp"
#include "ranklog/sync/http_client.hpp"
#include "ranklog/sync/server_settings.hpp"

namespace ranklog::sync {

// A final "no" from the server.
class RefusedError : public Error {
 public:
  RefusedError(ErrorCode code, const std::string& message, int http_status, std::string server_text)
      : Error(code, message), http_status_(http_status), server_text_(std::move(server_text)) {}
  [[nodiscard]] int http_status() const noexcept {
    return http_status_;
  }  // 200 for an answer with errors in it
  [[nodiscard]] const std::string& server_text() const noexcept { return server_text_; }

 private:
  int http_status_;
  std::string server_text_;
};

// The base URL with the key that belongs to it. The only place where a key becomes a header.
class ServerAccess {
 public:
  ServerAccess(ServerSettings settings, Credentials credentials);

  // A POST below the base URL, with credentials. `path` begins with '/'.
  [[nodiscard]] HttpRequest post(std::string_view path, std::string body) const;
  // A PUT to an address that the server gave out, without credentials. A relative address is below the base.
  [[nodiscard]] HttpRequest put(std::string_view address) const;
  // Adds the credentials if the request goes to the base URL's own scheme, host and port; else false.
  bool add_key(HttpRequest& request) const;
  // What a refusal by status means: RefusedError with the right code and words.
  [[noreturn]] void refuse(const HttpResponse& response, const std::string& what) const;

  [[nodiscard]] const ServerSettings& settings() const noexcept { return settings_; }

 private:
  ServerSettings settings_;
  std::string key_source_;
  std::string authorization_;
};

// Threads: safe from several at once.
class GraphqlClient {
 public:
  GraphqlClient(HttpClient& http, const ServerAccess& access) : http_(http), access_(access) {}

  // The "data" object of the answer. `what` names the request in messages. Throws RefusedError, and what
  // HttpClient::send() throws.
  [[nodiscard]] nlohmann::json call(std::string_view operation, std::string_view query,
                                    const nlohmann::json& variables, const std::string& what,
                                    Endpoint endpoint = Endpoint::kGraphql);

 private:
  HttpClient& http_;
  const ServerAccess& access_;
};

}  // namespace ranklog::sync
