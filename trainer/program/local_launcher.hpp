#pragma once
// The ranks of one machine, started from one command as torchrun does.

#include <string>

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
// stopped. Returns the exit status of the rank that failed first (128 + s if signal s killed it), or 0.
[[nodiscard]] int run_local_ranks(const LaunchPlan& plan, char** argv);

}  // namespace ranklog
