#pragma once
// What the user asked wandb-sync for.

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ranklog/schema/identity.hpp"
#include "ranklog/sync/environment.hpp"

namespace ranklog::sync {

struct Command {
  bool plan_only = false;
  bool json = false;
  bool verbose = false;
  bool yes = false;
  bool skip_synced = true;
  bool new_generation = false;
  bool paths_given = false;
  std::vector<std::filesystem::path> paths;  // never empty
  std::optional<Strategy> strategy;
  std::optional<int> main_rank;
  std::string entity, project, run_id, job_type, group;
  std::filesystem::path state_dir;
  int parallel = 5;
  double timeout_s = 600;
  double stale_s = 600;
};

// The command, or the exit status after --help or --version has been printed. Throws Error (kUsage).
[[nodiscard]] std::variant<Command, int> parse_command_line(int argc, const char* const* argv,
                                                            const Environment& environment);

}  // namespace ranklog::sync
