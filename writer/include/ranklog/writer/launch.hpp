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
  // The node, or the local rank, was worked out from the local world size: right if every node has as many
  // processes, which one process alone cannot know.
  bool if_nodes_are_even = false;
};

struct ExplicitPlace {
  std::optional<int> rank{}, local_rank{}, world_size{}, local_world_size{}, node{};
};

// Innermost launcher first: explicit; torchrun (RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, GROUP_RANK);
// OpenMPI; PMI/PMIx; Slurm; else one process. A missing local rank is derived where ranks are spread evenly
// (rank modulo local world size) and refused otherwise: it is never taken for 0. Throws Error (kUsage) with
// names and values of the variables that contradict each other.
[[nodiscard]] Place resolve_place(const ExplicitPlace& given, const EnvLookup& environment);

// The same without working anything out: what the launcher leaves open is empty. For ranks that can ask each
// other.
struct KnownPlace {
  int rank = 0;
  int world_size = 1;
  std::optional<int> local_rank{}, local_world_size{}, node{};
};
[[nodiscard]] KnownPlace read_place(const ExplicitPlace& given, const EnvLookup& environment);

struct LaunchId {
  std::optional<std::string> experiment;  // the launcher's id of the job, if it has one
  std::optional<std::string> token;       // equal for all ranks of this launch, different for the next one
  std::int64_t restart_count = 0;         // > 0: the launcher restarted the same job
  std::string source;                     // "torchrun", "slurm", ... for messages
};

// RANKLOG_RUN_ID, WANDB_RUN_ID; torchrun's run id when it is not "none"; Slurm job id (with array task and
// step); MPI/PMI job id.
[[nodiscard]] LaunchId resolve_launch(const EnvLookup& environment);

// What becomes of an experiment that exists already.
enum class Resume : std::uint8_t {
  kNo,       // it is left alone: this launch is a sibling of it
  kIfThere,  // it is continued; where there is none, it is begun
  kMust,     // it is continued; where there is none, that is an error
};

// `given` if the caller has a wish; else RANKLOG_RESUME (auto; 1; 0, as if unset); else kIfThere if the
// launcher restarted the same job. Throws Error (kUsage) for another word.
[[nodiscard]] Resume resolve_resume(std::optional<Resume> given, bool restarted,
                                    const EnvLookup& environment);

// Which experiment a launch writes to: one answer for all of its ranks.
struct LaunchChoice {
  std::string experiment;
  std::string token;  // new for each launch
  bool resumed = false;
};

}  // namespace ranklog
