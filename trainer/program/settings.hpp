#pragma once
// What the user asked ranklog-train for, by flags and environment.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "ranklog/schema/identity.hpp"
#include "ranklog/trainer/training.hpp"
#include "ranklog/writer/launch.hpp"

namespace ranklog {

struct Settings {
  TrainingOptions training;
  std::filesystem::path data;
  std::filesystem::path log_dir;
  std::string project;
  std::string group;
  std::string run_id;  // empty: the launcher's, or a new one
  std::optional<Strategy> log_strategy;
  bool resume = false;
  std::chrono::milliseconds timeout{std::chrono::seconds(300)};

  // --resume begins a run that is not there; what RANKLOG_RESUME and the launcher wish is looked up later.
  [[nodiscard]] std::optional<Resume> resume_wish() const {
    return resume ? std::optional(Resume::kIfThere) : std::nullopt;
  }

  // Starting the ranks of this node.
  std::optional<int> nproc_per_node;
  int nnodes = 1;
  int node_rank = 0;
  std::string master_addr;
  std::optional<int> master_port;
};

// Empty `settings`: the program is done (--help, --version, a usage error that was printed), with this
// status.
struct ParsedSettings {
  std::optional<Settings> settings;
  int exit_status = 0;
};

[[nodiscard]] ParsedSettings parse_settings(int argc, const char* const* argv, const EnvLookup& environment);

}  // namespace ranklog
