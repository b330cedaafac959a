#pragma once
// Who wrote a rank file: the job, the process and the place.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranklog {

// How the ranks of an experiment become W&B runs. The trainer records a default; wandb-sync decides.
enum class Strategy : std::uint8_t { kMain, kNode, kAll };

[[nodiscard]] std::string_view to_string(Strategy strategy) noexcept;
// Throws Error (kUsage) naming the text and the three accepted words.
[[nodiscard]] Strategy parse_strategy(std::string_view text);

struct Identity {
  // The job.
  std::string project;     // never empty
  std::string experiment;  // id of "the run": all ranks and all restarts of one job; never empty
  std::string entity;      // empty: the uploader's default
  std::string group;       // empty: the experiment id is used
  std::string job_type;
  std::string name;  // WANDB_NAME; empty: derived at upload
  std::string notes;
  std::vector<std::string> tags;
  std::string wandb_run_id;  // WANDB_RUN_ID, if the user set one
  std::optional<Strategy> log_strategy;

  // The place in the job. 0 <= rank < world_size, 0 <= local_rank < local_world_size.
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int local_world_size = 1;
  int node = 0;

  // The launch. Files with one token belong to one attempt. resume_step: the first step that this attempt
  // logs anew; rows of earlier attempts at steps >= resume_step are superseded. Empty: not a continuation.
  std::string launch_token;
  std::optional<std::int64_t> resume_step;

  // The process.
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t pid_start_ticks = 0;  // field 22 of /proc/<pid>/stat: tells a reused pid apart
  std::string program;
  std::vector<std::string> arguments;  // secrets masked
  std::string git_commit;
  std::string git_remote;
  std::string libraries = "{}";   // JSON object: name -> version
  std::string host_facts = "{}";  // JSON object: "os", "kernel", "cpu_count", "cpu_model", "memory_bytes" ...

  friend bool operator==(const Identity&, const Identity&) = default;
};

}  // namespace ranklog
