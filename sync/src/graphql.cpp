#include "graphql.hpp"

#include <nlohmann/json.hpp>

#include "ranklog/schema/digest.hpp"
#include "ranklog/sync/url.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kStalledUpload{std::chrono::minutes(1)};

std::string message_of(const json& error) {
  if (error.is_string()) return error.get<std::string>();
  if (error.is_object() && error.contains("message") && error["message"].is_string()) {
    return error["message"].get<std::string>();
  }
  return error.dump();
}

// Errors come as errors[], as {"error": "text"} or as {"error": {"message": "text"}}. Empty: none.
std::string errors_in(const json& body) {
  std::string text;
  if (!body.is_object()) return text;
  if (const auto errors = body.find("errors"); errors != body.end() && errors->is_array()) {
    for (const json& error : *errors) text += (text.empty() ? "" : "; ") + message_of(error);
  }
  if (const auto error = body.find("error"); text.empty() && error != body.end() && !error->is_null()) {
    text = message_of(*error);
  }
  return text;
}

bool is_permission_text(const std::string& text) {
  return text.find("ermission denied") != std::string::npos;
}

}  // namespace

ServerAccess::ServerAccess(ServerSettings settings, Credentials credentials)
    : settings_(std::move(settings)),
      key_source_(std::move(credentials.source)),
      authorization_("Basic " + base64("api:" + credentials.api_key)) {}

HttpRequest ServerAccess::post(std::string_view path, std::string body) const {
  HttpRequest request;
  request.url = settings_.base_url + std::string(path);
  request.body = std::move(body);
  request.timeout = settings_.graphql_timeout;
  request.headers.emplace_back("Authorization", authorization_);
  request.headers.emplace_back("X-WANDB-USERNAME", settings_.username);
  request.headers.emplace_back("X-WANDB-USER-EMAIL", settings_.email);
  return request;
}

HttpRequest ServerAccess::put(std::string_view address) const {
  HttpRequest request;
  request.method = "PUT";
  request.url = (address.starts_with('/') ? settings_.base_url : "") + std::string(address);
  request.timeout = kStalledUpload;
  request.finish_when_stopped = false;  // it can be sent again from the start
  return request;
}

bool ServerAccess::add_key(HttpRequest& request) const {
  const Url ours = parse_url(settings_.base_url, "the server's address");
  const Url theirs = parse_url(request.url, "an upload address");
  if (ours.scheme != theirs.scheme || ours.netloc != theirs.netloc) return false;
  request.headers.emplace_back("Authorization", authorization_);
  return true;
}

void ServerAccess::refuse(const HttpResponse& response, const std::string& what) const {
  const json body = json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  std::string said = errors_in(body);
  if (said.empty()) said = describe_failure(Endpoint::kGraphql, response);
  const std::string host = parse_url(settings_.base_url, "the server's address").netloc;
  if (response.status == 401) {
    throw RefusedError(ErrorCode::kUnauthorized,
                       host + " refused the API key from " + key_source_ +
                           " (401); check that it is a key of this server and still valid",
                       response.status, said);
  }
  const bool forbidden = response.status == 403 || is_permission_text(said);
  throw RefusedError(forbidden ? ErrorCode::kUnauthorized : ErrorCode::kServer,
                     what + ": " + host + (forbidden ? " does not allow it: " : " refused it: ") + said,
                     response.status, said);
}

json GraphqlClient::call(std::string_view operation, std::string_view query, const json& variables,
                         const std::string& what, Endpoint endpoint) {
  const json body = {{"query", query}, {"variables", variables}, {"operationName", operation}};
  // Names from files may hold anything; what is not UTF-8 goes out as U+FFFD.
  const HttpRequest request =
      access_.post("/graphql", body.dump(-1, ' ', false, json::error_handler_t::replace));
  const HttpResponse response = http_.send(endpoint, request, what);
  json answer = json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (!response.ok() || !errors_in(answer).empty()) access_.refuse(response, what);
  if (!answer.is_object() || !answer.contains("data")) {
    throw Error(ErrorCode::kServer, what + ": the reply is no GraphQL answer",
                "check WANDB_BASE_URL (" + access_.settings().base_url + ")");
  }
  return std::move(answer["data"]);
}

}  // namespace ranklog::sync
