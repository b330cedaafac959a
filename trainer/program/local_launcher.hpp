#pragma once
// The ranks of one machine, started from one command as torchrun does.

#include <string>

#include "ranklog/writer/launch.hpp"

namespace ranklog {

struct LaunchPlan {
  int ranks_here = 1;
  int nodes = 1;
  int node_rank = 0;
  std::string master_addr;
  std::string master_port;
};

// Runs this program once a rank with the same arguments and RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,
// GROUP_RANK, MASTER_ADDR and MASTER_PORT set, and waits for all of them. SIGTERM, SIGUSR1 and SIGINT are
// passed on. When a rank fails, the others are given time to notice and to finish their logs; then they are
// stopped. Returns the exit status of the rank that ended first as failed, or 0; 2 or 5 of another one goes
// before 1, which may only be its echo. For a rank that signal s killed it is 1, or 128 + s if this job was
// sent s.
[[nodiscard]] int run_local_ranks(const LaunchPlan& plan, char** argv);

// Whether this process is one of the ranks that run_local_ranks started.
[[nodiscard]] bool started_by_local_launcher(const EnvLookup& environment);

}  // namespace ranklog
