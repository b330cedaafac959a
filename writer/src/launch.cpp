// Which job this is, and which launch of it, as far as the launcher says.

#include "ranklog/writer/launch.hpp"

#include <charconv>
#include <string>

#include "environment.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog {
namespace {

using writer::is_true;
using writer::lookup;
using writer::lookup_any;
using writer::parse_count;

std::int64_t restart_count(const EnvLookup& environment, std::string_view name) {
  const auto text = lookup(environment, name);
  if (!text) return 0;
  return parse_count(*text).value_or(0);
}

void join(std::string& list, const std::string& part) {
  list += (list.empty() ? "" : "|") + part;
}

// "none" is what torchrun itself calls a job that nobody named.
std::optional<std::string> torchrun_id(const EnvLookup& environment) {
  auto id = lookup(environment, "TORCHELASTIC_RUN_ID");
  if (id == "none") id.reset();
  return id;
}

bool under_torchrun(const EnvLookup& environment) {
  return lookup(environment, "TORCHELASTIC_RUN_ID") || lookup(environment, "TORCHELASTIC_RESTART_COUNT");
}

// An agent's rendezvous picks a fresh port for each round and tells it to all workers, so the port tells
// launches with a constant --rdzv-id apart.
std::string torchrun_token(const EnvLookup& environment) {
  return "torchrun:" + lookup(environment, "TORCHELASTIC_RUN_ID").value_or("") + ":" +
         lookup(environment, "MASTER_PORT").value_or("") + ":r" +
         std::to_string(restart_count(environment, "TORCHELASTIC_RESTART_COUNT"));
}

std::optional<std::string> slurm_job(const EnvLookup& environment) {
  const auto array = lookup(environment, "SLURM_ARRAY_JOB_ID");
  const auto task = lookup(environment, "SLURM_ARRAY_TASK_ID");
  if (array && task) return *array + "_" + *task;
  return lookup(environment, "SLURM_JOB_ID");
}

// The step names this launch only if srun started the ranks themselves. Agents of torchrun and daemons of
// mpirun (OpenMPI's, Hydra's) may each come from a step of their own, or from none on the first node.
std::string slurm_step(const EnvLookup& environment) {
  const auto step = lookup(environment, "SLURM_STEP_ID");
  if (!step || under_torchrun(environment)) return "";
  if (lookup_any(environment, {"OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID"})) return "";
  const auto pmi_size = lookup(environment, "PMI_SIZE");
  if (pmi_size && pmi_size != lookup(environment, "SLURM_STEP_NUM_TASKS")) return "";
  return "." + *step;
}

std::optional<std::string> mpi_job(const EnvLookup& environment) {
  const auto found =
      lookup_any(environment, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PALS_APID", "PMI_JOBID"});
  if (!found) return std::nullopt;
  return found->text;
}

void offer(LaunchId& launch, const std::optional<std::string>& id, const std::string& source) {
  if (launch.experiment || !id) return;
  launch.experiment = id;
  launch.source = source;
}

}  // namespace

LaunchId resolve_launch(const EnvLookup& environment) {
  LaunchId launch;
  const auto named = lookup_any(environment, {"RANKLOG_RUN_ID", "WANDB_RUN_ID"});
  if (named) offer(launch, named->text, named->name);
  offer(launch, torchrun_id(environment), "torchrun");

  std::string token;
  if (under_torchrun(environment)) join(token, torchrun_token(environment));
  if (const auto job = slurm_job(environment)) {
    const std::string id = *job + slurm_step(environment);
    offer(launch, "slurm-" + id, "slurm");
    join(token, "slurm:" + id + ":r" + std::to_string(restart_count(environment, "SLURM_RESTART_COUNT")));
  }
  if (const auto job = mpi_job(environment)) {
    offer(launch, "mpi-" + *job, "mpi");
    // Agents of torchrun may come from a step, and so a namespace, of their own on each node.
    if (!under_torchrun(environment)) join(token, "mpi:" + *job);
  }
  if (!token.empty()) launch.token = token;
  if (auto explicit_token = lookup(environment, "RANKLOG_LAUNCH_ID"))
    launch.token = std::move(explicit_token);
  launch.restart_count = restart_count(environment, "TORCHELASTIC_RESTART_COUNT") +
                         restart_count(environment, "SLURM_RESTART_COUNT");
  return launch;
}

Resume resolve_resume(std::optional<Resume> given, bool restarted, const EnvLookup& environment) {
  if (given) return *given;
  const auto word = lookup(environment, "RANKLOG_RESUME");
  if (word == "auto") return Resume::kIfThere;
  if (word && is_true(*word)) return Resume::kMust;
  if (word && *word != "0" && *word != "false" && *word != "no") {
    throw Error(ErrorCode::kUsage, "RANKLOG_RESUME=" + *word + " is not understood", "use auto, 1 or 0");
  }
  return restarted ? Resume::kIfThere : Resume::kNo;
}

}  // namespace ranklog
