#pragma once
// What has been uploaded where, kept beside the experiment, so that a push can be killed and run again.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ranklog::sync {

// Where an experiment goes. One state file each.
struct Destination {
  std::string server;   // base URL
  std::string entity;   // as the server names it
  std::string project;  // at the server
};

struct RunRecord {
  std::string run_id;
  std::string recipe;           // how its rows are made; another one for the same run is refused
  std::string entity, project;  // as the server spells them
  std::string storage_id;
  std::string header;        // the short fields that the server has confirmed, as JSON
  std::string config_hash;   // of the last confirmed config
  std::string summary_hash;  // of the last confirmed summary
  std::string finish;        // the end that was confirmed; empty since anything else was sent
  std::string done;          // fingerprint of the files that are up completely; empty: not
};

// Lines [first_line, first_line + lines) of a run's history, sent in one request.
struct BatchRecord {
  std::uint64_t first_line = 0;
  std::uint64_t lines = 0;
  std::string sha256;      // of the lines, each with a '\n' after it
  bool confirmed = false;  // false: it was about to be sent, and whether it arrived is not known
};

// Survives: every call is on disk when it returns (one transaction each, synchronous=FULL, rollback journal,
// so that it is also right on network file systems). Nothing in it is secret.
// Threads: safe from several. Errors: throw Error (kIo) naming the file.
class UploadState {
 public:
  // Creates the file if need be and takes its lock. Throws Error (kBusy) naming the host and process that
  // holds it. A damaged file is set aside as <name>.damaged: the server is then asked what it has.
  UploadState(const std::filesystem::path& path, const Destination& destination, bool default_entity);
  ~UploadState();

  [[nodiscard]] std::optional<RunRecord> run(std::string_view run_id);
  // With the MD5 of run files that the server has now, all or nothing.
  void save_run(const RunRecord& record, const std::map<std::string, std::string>& md5_by_name = {});

  [[nodiscard]] std::vector<BatchRecord> batches(std::string_view run_id);  // by first line
  // A batch before it is sent; the run no longer counts as finished or done. Replaces one with that first
  // line.
  void save_batch(std::string_view run_id, const BatchRecord& batch);
  void drop_batch(std::string_view run_id, std::uint64_t first_line);

  // Steps whose line the server found too large; with the first, the batch of that one line is dropped.
  [[nodiscard]] std::set<std::int64_t> left_out(std::string_view run_id);
  void leave_out(std::string_view run_id, std::optional<std::uint64_t> first_line, std::int64_t step);

  // Under which generation of its id a planned run goes up: 1, or what --new-generation made of it.
  [[nodiscard]] int generation(std::string_view planned_id);
  void save_generation(std::string_view planned_id, int generation);

  [[nodiscard]] std::string file_md5(std::string_view run_id, std::string_view name);  // empty: not uploaded

  [[nodiscard]] std::string artifact_id(std::string_view client_id);  // empty: not committed
  // Hash of the aliases and metadata that the server has confirmed; empty: none.
  [[nodiscard]] std::string artifact_description(std::string_view client_id);
  void save_artifact(std::string_view client_id, std::string_view name, std::string_view artifact_id,
                     std::string_view description);
  // Whether the artifact belongs to the run, made or used by it.
  [[nodiscard]] bool is_linked(std::string_view client_id, std::string_view run_id);
  void save_link(std::string_view client_id, std::string_view run_id);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// <folder>/<16 hex digits of SHA-256 of server, entity and project>.db
[[nodiscard]] std::filesystem::path state_path(const std::filesystem::path& folder,
                                               const Destination& destination);

// Of the folders that an experiment's pieces lie in, the one with its upload state: the first if none has
// one, that in which most history lines are confirmed if several have. Reads only.
[[nodiscard]] std::filesystem::path find_state_folder(const std::vector<std::filesystem::path>& folders,
                                                      const Destination& destination);

// The entity that an earlier push to this server and project found to be the key's default; empty if there
// was none or several. Reads only.
[[nodiscard]] std::string known_default_entity(const std::filesystem::path& folder, const std::string& server,
                                               const std::string& project);

// The fingerprint under which a run is up completely; empty if it is not. Reads only, takes no lock.
[[nodiscard]] std::string done_fingerprint(const std::filesystem::path& state_file,
                                           const std::string& run_id);

// As UploadState::generation(), reading only.
[[nodiscard]] int known_generation(const std::filesystem::path& state_file, const std::string& planned_id);

}  // namespace ranklog::sync
