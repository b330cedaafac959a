#pragma once
// One HTTP exchange, whatever carries it. libcurl stands behind this interface and nowhere else.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ranklog::sync {

// A body that streams from disk. The last bytes are held back until the digest of all of them is known to be
// `md5`, so that a file that has changed never arrives whole.
struct FileBody {
  std::filesystem::path path;
  std::uint64_t size = 0;  // bytes
  std::string md5;         // 32 lower-case hex digits
};

struct HttpRequest {
  std::string method = "POST";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::optional<FileBody> file;  // instead of `body`

  // Of the whole exchange; for a file: the longest time without a byte moving.
  std::chrono::milliseconds timeout{30'000};
  // False: must reach the server at most once for each call, so a transport never repeats it by itself on a
  // fresh connection.
  bool repeatable = true;
  // False: the first request to stop cuts it off; true: only the second does.
  bool finish_when_stopped = true;
  // Called on the caller's thread about once a second while it waits; must not throw.
  std::function<void()> while_waiting;
  // Called on any thread with the number of body bytes sent so far in this attempt.
  std::function<void(std::uint64_t)> on_sent;
};

// How far one exchange got.
enum class Delivery : std::uint8_t {
  kAnswered,       // a whole reply came; its status says the rest
  kNotSent,        // no connection: the server cannot have seen it
  kUnclear,        // cut off after sending began: the server may or may not have acted on it
  kUntrusted,      // the server's certificate was refused
  kSourceChanged,  // the file is not what its digest says, or could not be read
  kStopped,        // cut off because of a request to stop
};

struct HttpResponse {
  Delivery delivery = Delivery::kAnswered;
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  std::string fault;  // why there is no answer, for a person

  [[nodiscard]] bool ok() const noexcept {
    return delivery == Delivery::kAnswered && status >= 200 && status < 300;
  }
  [[nodiscard]] std::optional<std::string_view> header(std::string_view lower_case_name) const noexcept;
};

// Threads: perform() may be called from several at once; each call blocks its caller.
class Transport {
 public:
  virtual ~Transport() = default;
  // One exchange, never repeated (but see HttpRequest::repeatable); redirects are not followed.
  [[nodiscard]] virtual HttpResponse perform(const HttpRequest& request) = 0;
};

}  // namespace ranklog::sync
