#pragma once
// Where this process stands in the job, from explicit options and the launcher's variables. Pure: no clock,
// no file system, so that every launcher can be table-tested.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ranklog {

// Looks up an environment variable; empty if unset.
using EnvLookup = std::function<std::optional<std::string>(std::string_view name)>;
[[nodiscard]] EnvLookup process_environment();

struct Place {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int local_world_size = 1;  // where no launcher tells it: the most that is possible
  int node = 0;
};

struct ExplicitPlace {
  std::optional<int> rank{}, local_rank{}, world_size{}, local_world_size{}, node{};
};

// Innermost launcher first: explicit; torchrun (RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, GROUP_RANK);
// OpenMPI; PMI/PMIx; Slurm; else one process. A missing local rank is derived where ranks are spread evenly
// (rank modulo local world size) and refused otherwise: it is never taken for 0. Throws Error (kUsage) with
// names and values of the variables that contradict each other.
[[nodiscard]] Place resolve_place(const ExplicitPlace& given, const EnvLookup& environment);

struct LaunchId {
  std::optional<std::string> experiment;  // the launcher's id of the job, if it has one
  std::optional<std::string> token;       // equal for all ranks of this launch, different for the next one
  std::int64_t restart_count = 0;         // > 0: the launcher restarted the same job
  std::string source;                     // "torchrun", "slurm", ... for messages
};

// RANKLOG_RUN_ID, WANDB_RUN_ID; torchrun's run id when it is not "none"; Slurm job id (with array task and
// step); MPI/PMI job id.
[[nodiscard]] LaunchId resolve_launch(const EnvLookup& environment);

}  // namespace ranklog
