#pragma once
// Misbehaviour by script: rules that turn the n-th request of a kind into a fault. README.md describes the
// JSON form.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api_error.hpp"

namespace ranklog::standin {

// What is to go wrong with one request. With nothing set, all goes well.
struct Fault {
  std::string name;  // for the request log
  std::chrono::milliseconds delay{0};
  int status = 0;  // answer this instead
  std::map<std::string, std::string> headers;
  std::string body;
  bool process = true;     // do what the request asks for, before anything goes wrong with the answer
  bool cut = false;        // close the connection without an answer
  bool half_body = false;  // close it in the middle of the answer
};

class Script {
 public:
  Script() = default;
  // Throws ApiError(400) naming the rule that is wrong.
  explicit Script(const Json& json);

  // To be asked once a request. The first rule that matches and is due decides; every rule that matches
  // counts the request.
  [[nodiscard]] Fault next(const std::string& method, const std::string& path, const std::string& operation);

 private:
  struct Range {
    std::uint64_t first = 1;
    std::uint64_t last = 0;
  };
  struct Rule {
    std::string method, path, operation;  // patterns; empty matches all
    std::vector<Range> at;                // empty: every time
    std::uint64_t seen = 0;
    Fault fault;
  };

  static Rule parse_rule(const Json& json);
  static std::vector<Range> parse_at(const Json& at);
  static Fault parse_fault(const Json& json);

  std::vector<Rule> rules_;
};

}  // namespace ranklog::standin
