#pragma once
// One run as the server holds it, and its folder:
//   run.json  config.json  summary.json  history.jsonl  events.jsonl  output.log  files/...

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api_error.hpp"
#include "line_file.hpp"

namespace ranklog::standin {

inline constexpr const char* kHistoryFile = "wandb-history.jsonl";
inline constexpr const char* kEventsFile = "wandb-events.jsonl";
inline constexpr const char* kSummaryFile = "wandb-summary.json";
inline constexpr const char* kConsoleFile = "output.log";

// What run.json holds.
struct RunFacts {
  std::string id;    // the opaque node ID
  std::string name;  // the run ID, as in URLs
  std::string entity;
  std::string project;
  Json attributes = Json::object();  // by their names in UpsertBucketInput: displayName, groupName ...
  std::vector<std::string> tags;
  long long created_at_ms = 0;
  long long heartbeat_at_ms = 0;  // of the last upsert or file_stream request
  bool complete = false;
  int exit_code = 0;  // means something once complete
  bool preempting = false;
  std::vector<std::string> uploaded;  // files the client has told about, each once
  std::vector<std::string> used_artifacts;
  std::vector<std::string> anomalies;  // what a careful server would wonder about
  std::uint64_t more_anomalies = 0;    // beyond those kept
};

// What the server has read out of one history line.
struct RowFacts {
  bool is_object = false;
  std::optional<std::int64_t> step;  // of an integer _step
};

class Run {
 public:
  // A new run.
  Run(std::filesystem::path folder, RunFacts facts);
  // What a folder holds. Throws ranklog::Error.
  static Run load(const std::filesystem::path& folder);

  RunFacts facts;

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  [[nodiscard]] std::filesystem::path file_path(const std::string& name) const;
  // Of the uploaded files, sorted.
  [[nodiscard]] std::vector<std::string> file_names() const;
  // Throws ApiError(400) for a name that no file_stream file has.
  [[nodiscard]] LineFile& lines(const std::string& stream);
  [[nodiscard]] const LineFile& lines(const std::string& stream) const;

  // Of every history line. Parses each line once.
  [[nodiscard]] const std::vector<RowFacts>& rows() const;
  // To be called when a history line has changed.
  void refresh_row(std::uint64_t number);

  // As the client sent them; "{}" if it never did.
  [[nodiscard]] const std::string& config_text() const noexcept { return config_; }
  [[nodiscard]] const std::string& summary_text() const noexcept { return summary_; }
  void set_config(const std::string& text);
  void set_summary(const std::string& text);

  // running, crashed (silent for longer than `crash_after` without having completed), finished, failed or
  // preempted.
  [[nodiscard]] std::string state(long long now_ms, std::chrono::milliseconds crash_after) const;

  // The client says that it has uploaded this file.
  void note_uploaded(const std::string& name);
  void note_anomaly(const std::string& what);
  // Puts everything on disk.
  void save();

 private:
  explicit Run(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void open_lines(const Json& holes);

  std::filesystem::path folder_;
  std::map<std::string, LineFile> lines_;
  std::string config_ = "{}";
  std::string summary_ = "{}";
  mutable std::vector<RowFacts> rows_;  // of the first lines; the rest when asked for
};

}  // namespace ranklog::standin
