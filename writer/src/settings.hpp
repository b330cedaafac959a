#pragma once
// Options with every empty field looked up: explicit option over RANKLOG_* over WANDB_* over default.

#include "ranklog/writer/launch.hpp"
#include "ranklog/writer/writer.hpp"

namespace ranklog::writer {

struct Settings {
  Options options;  // log_dir absolute; project never empty
  Place place;
  LaunchId launch;
  std::optional<std::string> explicit_token;  // RANKLOG_LAUNCH_ID
  Resume resume = Resume::kNo;
  bool restarted = false;  // the launcher started the same job again
  std::string wandb_run_id;
};

// Throws Error (kUsage) for variables that contradict each other or hold a word that is not understood.
[[nodiscard]] Settings resolve_settings(Options options, const EnvLookup& environment,
                                        const LaunchRequest& request = {});

// Options::disabled, or WANDB_MODE or RANKLOG_MODE "disabled".
[[nodiscard]] bool logging_is_disabled(const Options& options, const EnvLookup& environment);

}  // namespace ranklog::writer
