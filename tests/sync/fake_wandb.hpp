#pragma once
// W&B in memory, behind the transport interface: exact about lines and artifacts, and as unkind as a test
// wants.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ranklog/sync/transport.hpp"

namespace ranklog::sync::test {

// What a killed process leaves: thrown through everything. Not a std::exception, so that nobody handles it.
struct Killed {};

class FakeWandb final : public Transport {
 public:
  struct Run {
    std::string storage_id;
    nlohmann::json variables;  // of the last upsert
    std::vector<std::string> history;
    std::string summary;
    std::vector<std::string> uploaded;
    std::map<std::string, std::string> files;
    std::vector<std::string> used_artifacts;
    bool preempting = false;
    std::optional<int> exit_code;  // of a complete that nothing followed
  };
  struct ArtifactVersion {
    std::string id, name, client_id, digest, run, manifest;
    std::vector<std::string> aliases;
    std::vector<std::string> tags;
    std::string metadata;
    std::map<std::string, std::string> files;
    bool committed = false;
  };

  // How the n-th request (from 0) goes wrong; empty: it does not.
  struct Fault {
    bool acts = false;      // the server does what was asked all the same
    bool kills = false;     // the client dies of it
    HttpResponse response;  // else it sees this
  };
  using FaultPlan = std::function<std::optional<Fault>(std::size_t number, const HttpRequest& request)>;

  HttpResponse perform(const HttpRequest& request) override;

  // Settings.
  FaultPlan faults = [](std::size_t, const HttpRequest&) { return std::nullopt; };
  bool appends = false;  // ignores offsets, as some servers do
  std::string api_key = std::string(40, 'k');
  std::vector<std::string> features;
  std::deque<std::size_t> stale_counts;  // of history lines, shown before the true one
  bool storage_is_proxied = false;       // below the base URL, where a PUT needs the key

  // What it holds.
  std::map<std::string, Run> runs;            // by id
  std::vector<ArtifactVersion> artifacts;     // in order of creation
  std::vector<std::string> log;               // operation names, "file_stream", "PUT"
  std::vector<std::string> faults_of_client;  // what a client must never do
  std::size_t rows_received = 0;              // history lines in all requests

  // All of it as one text, to compare with that of another.
  [[nodiscard]] std::string state() const;
  [[nodiscard]] std::size_t count(const std::string& entry) const;

 private:
  HttpResponse act(const HttpRequest& request);
  HttpResponse put(const HttpRequest& request);
  HttpResponse graphql(const HttpRequest& request);
  HttpResponse file_stream(const HttpRequest& request);
  nlohmann::json answer_to(const std::string& operation, const nlohmann::json& variables);
  nlohmann::json upsert(const nlohmann::json& variables);
  nlohmann::json resume_status(const nlohmann::json& variables);
  nlohmann::json commit(const nlohmann::json& variables);
  nlohmann::json use(const nlohmann::json& input);
  nlohmann::json create_run_files(const nlohmann::json& variables);
  nlohmann::json create_artifact(const nlohmann::json& input);
  nlohmann::json create_manifest(const nlohmann::json& variables);
  nlohmann::json create_files(const nlohmann::json& variables);
  ArtifactVersion* find_artifact(const std::string& id);
  ArtifactVersion* find_client(const std::string& client_id);
  void point_aliases(ArtifactVersion& version, const nlohmann::json& aliases);
  [[nodiscard]] std::string storage(const std::string& path) const;
  void take_lines(Run& run, const nlohmann::json& file);

  std::recursive_mutex mutex_;
  std::map<std::string, std::function<void(const std::string&)>> upload_places_;
  std::size_t requests_ = 0;
};

// The operation of a GraphQL request, "file_stream" or "PUT".
[[nodiscard]] std::string request_kind(const HttpRequest& request);

}  // namespace ranklog::sync::test
