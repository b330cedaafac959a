#include "file_stream.hpp"

#include "ranklog/schema/value.hpp"
#include "ranklog/sync/url.hpp"

namespace ranklog::sync {
namespace {

constexpr std::chrono::milliseconds kTimeout{std::chrono::minutes(3)};
constexpr std::chrono::seconds kHeartbeat{30};

}  // namespace

FileStream::FileStream(HttpClient& http, const ServerAccess& access, RunAddress run)
    : http_(http),
      access_(access),
      run_(std::move(run)),
      path_("/files/" + percent_encode(run_.entity) + "/" + percent_encode(run_.project) + "/" +
            percent_encode(run_.run_id) + "/file_stream"),
      pacer_(http.clock().now()),
      last_post_(http.clock().now()) {}

void FileStream::post(const std::string& body, const std::string& what) {
  HttpRequest request = access_.post(path_, body);
  request.timeout = kTimeout;
  wait_for_turn();
  const HttpResponse response = http_.send(Endpoint::kFileStream, request, what);
  pacer_.observe(response);
  last_post_ = http_.clock().now();
  if (!response.ok()) access_.refuse(response, what);
}

HttpRequest FileStream::history_request(const std::string& body) const {
  HttpRequest request = access_.post(path_, body);
  request.timeout = kTimeout;
  request.repeatable = false;
  return request;
}

HttpResponse FileStream::attempt(const HttpRequest& request, const std::string& what) {
  wait_for_turn();
  HttpResponse response = http_.attempt(request, what);
  pacer_.observe(response);
  last_post_ = http_.clock().now();
  return response;
}

void FileStream::keep_alive() noexcept {
  try {
    if (http_.clock().now() - last_post_ < kHeartbeat) return;
    last_post_ = http_.clock().now();
    (void)http_.attempt(access_.post(path_, "{}"), "heartbeat of run " + run_.run_id);
  } catch (...) {
    // Interrupted or out of memory: whoever waits for the upload finds out by itself.
    return;
  }
}

void FileStream::wait_for_turn() {
  http_.pause(pacer_.take(http_.clock().now()), {});
}

std::string history_body(std::uint64_t offset, std::string_view lines) {
  std::string body =
      "{\"files\":{\"wandb-history.jsonl\":{\"offset\":" + std::to_string(offset) + ",\"content\":[";
  body.reserve(body.size() + lines.size() + lines.size() / 4);
  for (bool first = true; !lines.empty(); first = false) {
    const std::size_t end = lines.find('\n');
    if (!first) body.push_back(',');
    append_json_string(body, lines.substr(0, end));
    lines.remove_prefix(end + 1);
  }
  body += "]}}}";
  return body;
}

std::string summary_body(std::string_view summary, const std::vector<std::string>& uploaded) {
  std::string body = "{\"files\":{\"wandb-summary.json\":{\"offset\":0,\"content\":[";
  append_json_string(body, summary);
  body += "]}}";
  if (!uploaded.empty()) body += ",\"uploaded\":[";
  for (std::size_t i = 0; i < uploaded.size(); ++i) {
    if (i > 0) body.push_back(',');
    append_json_string(body, uploaded[i]);
  }
  body += uploaded.empty() ? "}" : "]}";
  return body;
}

}  // namespace ranklog::sync
