#pragma once
// Uploads what a plan says, as often as it is asked to, each row and artifact once.

#include <chrono>
#include <filesystem>

#include "ranklog/sync/clock.hpp"
#include "ranklog/sync/environment.hpp"
#include "ranklog/sync/plan.hpp"
#include "ranklog/sync/progress.hpp"
#include "ranklog/sync/report.hpp"
#include "ranklog/sync/server_settings.hpp"
#include "ranklog/sync/stop.hpp"
#include "ranklog/sync/transport.hpp"

namespace ranklog::sync {

struct PushOptions {
  ServerSettings server;
  std::filesystem::path state_dir;  // empty: .wandb-sync in the experiment's folder
  std::chrono::milliseconds patience{std::chrono::minutes(10)};
  int parallel_runs = 5;
  // A run that conflicts with what was uploaded under its id goes up as <id>-g2 (-g3 ...); the old one is
  // tagged as superseded. False: it fails. Runs without a conflict go on as they are.
  bool new_generation = false;
  bool skip_synced = true;  // false: ask the server about runs that are up completely, too
};

// What a push works with; all must outlive it.
struct PushTools {
  const Environment& environment;  // for the credentials, which are looked up only if something must be sent
  Transport& transport;
  Clock& clock;
  const StopFlag& stop;
  Progress& progress;
};

// One run's fault does not stop the others. Throws Error for what stops all of them: no or refused
// credentials (kUnauthorized), a server that cannot be reached (kTemporary).
[[nodiscard]] PushReport push(const Plan& plan, const PushOptions& options, const PushTools& tools);

}  // namespace ranklog::sync
