#pragma once
// requests.jsonl in the state folder: one line a request, for tests that ask what a client really sent.

#include <filesystem>
#include <fstream>
#include <string>

#include "api_error.hpp"

namespace ranklog::standin {

// Not thread-safe. What cannot be written is thrown as ranklog::Error.
class RequestLog {
 public:
  explicit RequestLog(const std::filesystem::path& folder);
  void add(const Json& entry);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

// Bodies up to this size are kept.
inline constexpr std::size_t kMaxLoggedBody = std::size_t{1} << 16;

// A body as the log has it: JSON as JSON, other text as text; null for a large or binary one.
[[nodiscard]] Json loggable_body(const std::string& body);

}  // namespace ranklog::standin
