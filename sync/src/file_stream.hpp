#pragma once
// The stream of one run: history lines, summary, heartbeat and end, one request at a time.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graphql.hpp"
#include "pacer.hpp"
#include "ranklog/sync/http_client.hpp"
#include "wandb_api.hpp"

namespace ranklog::sync {

class FileStream {
 public:
  // The references must outlive it.
  FileStream(HttpClient& http, const ServerAccess& access, RunAddress run);

  // For what may be sent twice without harm. Throws what HttpClient::send() throws, and RefusedError.
  void post(const std::string& body, const std::string& what);

  // One attempt for what must arrive once; the caller settles it.
  [[nodiscard]] HttpRequest history_request(const std::string& body) const;
  [[nodiscard]] HttpResponse attempt(const HttpRequest& request, const std::string& what);

  // Sends {} if nothing was sent for 30 s, so that the run does not count as crashed meanwhile. Never throws:
  // a heartbeat that is lost is followed by another.
  void keep_alive() noexcept;

  [[nodiscard]] const RunAddress& run() const noexcept { return run_; }

 private:
  void wait_for_turn();

  HttpClient& http_;
  const ServerAccess& access_;
  RunAddress run_;
  std::string path_;
  Pacer pacer_;
  std::chrono::steady_clock::time_point last_post_;
};

// {"files":{"wandb-history.jsonl":{"offset":N,"content":[...]}}} for lines that each end in '\n'.
[[nodiscard]] std::string history_body(std::uint64_t offset, std::string_view lines);

// The last line of `wandb-summary.json` and the run files that have been uploaded.
[[nodiscard]] std::string summary_body(std::string_view summary, const std::vector<std::string>& uploaded);

}  // namespace ranklog::sync
