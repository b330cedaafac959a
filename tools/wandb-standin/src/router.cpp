#include "router.hpp"

#include <ostream>

#include "auth.hpp"
#include "disk.hpp"
#include "graphql_document.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"
#include "show.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

constexpr const char* kIncomingFolder = ".incoming";

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Answer refusal(int status, const std::string& message, const Json& body) {
  Answer answer;
  answer.status = status;
  answer.body = dump(body);
  answer.error = message;
  return answer;
}

// GraphQL's own form of an error, with the place in the query that W&B names.
Answer graphql_refusal(int status, const std::string& message, const std::string& operation) {
  Json error = {{"message", message}};
  if (!operation.empty()) error["path"] = {operation};
  return refusal(status, message, {{"errors", {error}}, {"data", nullptr}});
}

Answer plain_refusal(int status, const std::string& message) {
  return refusal(status, message, {{"error", message}});
}

bool is_file_stream(const std::vector<std::string>& parts) {
  return parts.size() == 6 && parts[1] == "files" && parts[5] == "file_stream";
}

Json parse_body(const std::string& body) {
  Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded()) throw ApiError(400, "the body is not JSON");
  return json;
}

// "POST /graphql UpsertBucket", for people.
std::string describe(const Incoming& request, const std::string& operation) {
  return request.method + " " + request.path + (operation.empty() ? "" : " " + operation);
}

std::string operation_of(const Incoming& request) {
  if (request.path != "/graphql") return "";
  return operation_name(Json::parse(request.body, nullptr, false));
}

// Runs `work`, and turns what it throws into an answer by `refuse`.
template <typename Work, typename Refuse>
Answer guarded(const Work& work, const Refuse& refuse) {
  try {
    return work();
  } catch (const ApiError& error) {
    return refuse(error.status(), error.what());
  } catch (const Json::exception& error) {
    return refuse(400, error.what());
  } catch (const std::exception& error) {
    return refuse(500, error.what());
  }
}

}  // namespace

std::string Incoming::header(const std::string& lower_case_name) const {
  const auto found = headers.find(lower_case_name);
  return found == headers.end() ? "" : found->second;
}

Router::Router(const fs::path& folder, Settings settings, const Json& script, std::ostream* complaints)
    : service_(folder, std::move(settings)), script_(script), log_(folder), complaints_(complaints) {
  fs::remove_all(folder / kIncomingFolder);
  make_folder(folder / kIncomingFolder);
}

Fault Router::plan(const Incoming& request) {
  const std::string operation = operation_of(request);
  const std::lock_guard lock(mutex_);
  if (request.path.starts_with("/standin/")) return {};
  return script_.next(request.method, request.path, operation);
}

Answer Router::answer(const Incoming& request) {
  const std::lock_guard lock(mutex_);
  return guarded([&] { return route(request); }, plain_refusal);
}

Answer Router::route(const Incoming& request) {
  const auto parts = split(request.path, '/');
  if (request.method == "POST" && request.path == "/graphql") return graphql(request);
  if (request.method == "POST" && is_file_stream(parts)) return file_stream(request);
  if (request.method == "GET" && parts.size() == 3 && parts[1] == "upload") return download(request);
  if (parts.size() == 3 && parts[1] == "standin") return admin(request);
  if (request.path.starts_with("/sdk/otel/")) return {};  // the client's telemetry about itself, dropped
  throw ApiError(404, "no such address: " + request.method + " " + request.path);
}

Answer Router::graphql(const Incoming& request) {
  const std::string operation = operation_of(request);
  return guarded(
      [&] {
        check_authorization(request.header("authorization"), service_.settings.api_key);
        Answer answer;
        answer.body = dump(service_.graphql(parse_body(request.body), "http://" + request.host));
        return answer;
      },
      [&](int status, const std::string& message) {
        const std::string named = operation.empty() ? message : message + " (operation " + operation + ")";
        return graphql_refusal(status, named, operation);
      });
}

Answer Router::file_stream(const Incoming& request) {
  check_authorization(request.header("authorization"), service_.settings.api_key);
  const auto parts = split(request.path, '/');
  Answer answer;
  answer.body = dump(service_.file_stream(percent_decode(parts[2]), percent_decode(parts[3]),
                                          percent_decode(parts[4]), parse_body(request.body)));
  return answer;
}

Answer Router::download(const Incoming& request) {
  const Ticket& ticket = service_.uploads.find(split(request.path, '/')[2]);
  if (!fs::is_regular_file(ticket.target)) throw ApiError(404, "nothing was uploaded here yet");
  Answer answer;
  answer.content_type = "application/octet-stream";
  answer.file = ticket.target;
  return answer;
}

Answer Router::admin(const Incoming& request) {
  Answer answer;
  if (request.method == "POST" && request.path == "/standin/clock") {
    const Json body = parse_body(request.body);
    service_.advance_clock(
        std::chrono::milliseconds(static_cast<long long>(body.value("advance_seconds", 0.0) * 1000)));
    answer.body = dump({{"now", format_time(service_.clock.now())}});
  } else if (request.method == "POST" && request.path == "/standin/script") {
    script_ = Script(parse_body(request.body));
    answer.body = "{}";
  } else if (request.method == "GET" && request.path == "/standin/state") {
    answer.body = dump(state_json(service_.store, service_.clock.now(), service_.settings.crash_after));
  } else {
    throw ApiError(404, "no such address: " + request.method + " " + request.path);
  }
  return answer;
}

Answer Router::answer_upload(const Incoming& request, const Received& received) {
  const std::lock_guard lock(mutex_);
  return guarded(
      [&] {
        accept_upload(request, received);
        Answer answer;
        answer.content_type = "text/plain";
        answer.headers["ETag"] = "\"" + received.stored.md5_hex + "\"";
        return answer;
      },
      plain_refusal);
}

void Router::accept_upload(const Incoming& request, const Received& received) {
  const auto parts = split(request.path, '/');
  if (parts.size() != 3 || parts[1] != "upload") throw ApiError(404, "no such address: PUT " + request.path);
  if (!request.header("authorization").empty()) {
    throw ApiError(400,
                   "only one auth mechanism allowed: a pre-signed address takes no Authorization header");
  }
  const Ticket ticket = service_.uploads.find(parts[2]);
  if (!ticket.writable) throw ApiError(403, "this address is for reading");
  const std::string md5 = request.header("content-md5");
  if (!ticket.content_md5.empty() && md5 != ticket.content_md5) {
    throw ApiError(
        403, "the signature covers Content-MD5 " + ticket.content_md5 + ", the request has \"" + md5 + "\"");
  }
  const std::string type = request.header("content-type");
  if (!ticket.content_type.empty() && type != ticket.content_type) {
    throw ApiError(403, "the signature covers Content-Type " + ticket.content_type + ", the request has \"" +
                            type + "\"");
  }
  if (!md5.empty() && md5 != base64_of_hex(received.stored.md5_hex)) {
    throw ApiError(400, "the bytes are not what Content-MD5 says");
  }
  if (ticket.admit) ticket.admit();
  move_file(received.file, ticket.target);
  if (ticket.stored) ticket.stored(received.stored);
}

void Router::log(const Incoming& request, std::uint64_t request_bytes, const Answer& answer,
                 const Fault& fault) {
  const std::string operation = operation_of(request);
  Json headers = Json::object();
  for (const auto& [name, value] : request.headers) {
    headers[name] = name == "authorization" ? describe_authorization(value) : value;
  }
  const bool lost = fault.cut;
  Json entry = {
      {"method", request.method},       {"path", request.path}, {"status", lost ? 0 : answer.status},
      {"request_bytes", request_bytes}, {"headers", headers},   {"body", loggable_body(request.body)}};
  if (!operation.empty()) entry["operation"] = operation;
  if (!fault.name.empty()) entry["fault"] = fault.name;
  if (!answer.error.empty()) entry["error"] = answer.error;
  const std::lock_guard lock(mutex_);
  entry["time"] = format_time(service_.clock.now());
  log_.add(entry);
  if (complaints_ != nullptr && !answer.error.empty()) {
    *complaints_ << answer.status << " " << describe(request, operation) << ": " << answer.error << '\n';
  }
}

fs::path Router::incoming_file() const {
  return service_.store.folder() / kIncomingFolder / random_token(16);
}

}  // namespace ranklog::standin
