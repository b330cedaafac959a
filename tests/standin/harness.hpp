#pragma once
// A stand-in server in the test's own process, and a client that speaks to it over a real connection.

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "http_server.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::standin {

inline const std::string kKey(40, 'k');

using Headers = std::multimap<std::string, std::string>;

struct Reply {
  int status = 0;  // 0: the connection broke
  Json body;       // null if it is not JSON
  std::string text;
  Headers headers;

  [[nodiscard]] std::string error() const;  // the first GraphQL error's message, or ""
  [[nodiscard]] const Json& data() const { return body.at("data"); }
};

class StandinTest {
 public:
  StandinTest() : StandinTest(Settings{}) {}
  explicit StandinTest(Settings settings, Json script = Json::object());
  ~StandinTest();

  // Stops the server and starts another on the same folder.
  void restart();
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return dir_.path(); }
  // A connection that has asked once and is kept open as long as the result lives.
  [[nodiscard]] std::shared_ptr<void> idle_connection() const;

  Reply post(const std::string& path, const Json& body) const;
  Reply post_as(const std::string& key, const std::string& path, const Json& body) const;
  Reply post_bytes(const std::string& path, const std::string& bytes, const Headers& headers) const;
  // As clients do it, without credentials.
  Reply put(const std::string& url, const std::string& bytes, const Headers& headers = {}) const;
  Reply get(const std::string& url) const;
  Reply graphql(const std::string& query, const Json& variables = Json::object()) const;
  Reply stream(const std::string& run, const Json& body) const;

  // With the mutation as W&B's client sends it. `more` joins the variables.
  Reply upsert(const std::string& run, const Json& more = Json::object()) const;
  // run { <fields> } of a run in the project "p".
  [[nodiscard]] Json run_fields(const std::string& run, const std::string& fields) const;

 private:
  void start();
  void stop();

  test::TempDir dir_;
  Settings settings_;
  Json script_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

// GET from a server that is not the test's own.
[[nodiscard]] Reply get_from(int port, const std::string& path);
// {"files": {"wandb-history.jsonl": {"offset": ..., "content": [...]}}}
[[nodiscard]] Json history_chunk(std::uint64_t offset, const std::vector<std::string>& lines);

}  // namespace ranklog::standin
