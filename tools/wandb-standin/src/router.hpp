#pragma once
// From an HTTP request to an answer, without HTTP's library: what the paths mean, who may use them, and what
// refusals look like.
//
// Threads: every public function locks the one mutex of the server.

#include <filesystem>
#include <iosfwd>
#include <map>
#include <mutex>
#include <string>

#include "request_log.hpp"
#include "script.hpp"
#include "service.hpp"

namespace ranklog::standin {

struct Incoming {
  std::string method;
  std::string path;                            // as sent, without a query string
  std::string body;                            // empty for uploads
  std::string host;                            // the Host header
  std::map<std::string, std::string> headers;  // names in lower case

  [[nodiscard]] std::string header(const std::string& lower_case_name) const;
};

struct Answer {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::map<std::string, std::string> headers;
  std::filesystem::path file;  // if set, the body is this file's
  std::string error;           // for the log
};

// An upload that has been received.
struct Received {
  std::filesystem::path file;
  Stored stored;
};

class Router {
 public:
  Router(const std::filesystem::path& folder, Settings settings, const Json& script,
         std::ostream* complaints);

  // What the script has for this request. To be asked once, first.
  [[nodiscard]] Fault plan(const Incoming& request);
  [[nodiscard]] Answer answer(const Incoming& request);
  [[nodiscard]] Answer answer_upload(const Incoming& request, const Received& received);
  void log(const Incoming& request, std::uint64_t request_bytes, const Answer& answer, const Fault& fault);
  // Where an upload is received before it is known to be right.
  [[nodiscard]] std::filesystem::path incoming_file() const;

 private:
  Answer route(const Incoming& request);
  Answer graphql(const Incoming& request);
  Answer file_stream(const Incoming& request);
  Answer download(const Incoming& request);
  Answer admin(const Incoming& request);
  void accept_upload(const Incoming& request, const Received& received);

  std::mutex mutex_;
  Service service_;
  Script script_;
  RequestLog log_;
  std::ostream* complaints_;
};

}  // namespace ranklog::standin
