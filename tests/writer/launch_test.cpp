#include <gtest/gtest.h>

#include <vector>

#include "fake_environment.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/writer/launch.hpp"

namespace ranklog {
namespace {

using test::fake_environment;
using test::Variables;

Variables with(Variables variables, const Variables& more) {
  variables.insert(more.begin(), more.end());
  return variables;
}

LaunchId resolve(const Variables& variables) {
  return resolve_launch(fake_environment(variables));
}

TEST(Launch, ExperimentIdComesFromTheFirstSourceThatNamesOne) {
  struct Case {
    Variables variables;
    std::optional<std::string> experiment;
  };
  const std::vector<Case> cases{
      {{}, std::nullopt},
      {{{"RANKLOG_RUN_ID", "a"}, {"WANDB_RUN_ID", "b"}, {"SLURM_JOB_ID", "7"}}, "a"},
      {{{"WANDB_RUN_ID", "b"}, {"TORCHELASTIC_RUN_ID", "t"}}, "b"},
      {{{"TORCHELASTIC_RUN_ID", "t"}, {"SLURM_JOB_ID", "7"}}, "t"},
      {{{"TORCHELASTIC_RUN_ID", "none"}}, std::nullopt},
      {{{"TORCHELASTIC_RUN_ID", "none"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "3"}}, "slurm-7"},
      {{{"SLURM_JOB_ID", "7"}}, "slurm-7"},
      {{{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "3"}}, "slurm-7.3"},
      {{{"SLURM_JOB_ID", "9"},
        {"SLURM_ARRAY_JOB_ID", "7"},
        {"SLURM_ARRAY_TASK_ID", "2"},
        {"SLURM_STEP_ID", "0"}},
       "slurm-7_2.0"},
      {{{"PMIX_NAMESPACE", "prterun-n1-44@1"}, {"OMPI_COMM_WORLD_RANK", "0"}}, "mpi-prterun-n1-44@1"},
      {{{"OMPI_MCA_ess_base_jobid", "4711"}, {"OMPI_COMM_WORLD_RANK", "0"}}, "mpi-4711"},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, std::nullopt},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "kvs_44_0"}}, "mpi-kvs_44_0"},
      {{{"PMI_RANK", "0"}, {"PALS_APID", "5e1b"}}, "mpi-5e1b"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "29500"}}, std::nullopt},
  };
  for (const auto& one : cases) EXPECT_EQ(resolve(one.variables).experiment, one.experiment);
}

// Where the ranks of one launch see different things: the first node's are started beside mpirun, the others'
// by daemons that came in a step; or each node has a step of its own.
TEST(Launch, RanksOfOneLaunchAreOneExperiment) {
  struct Case {
    const char* what;
    Variables one_rank, other_rank;
    std::string experiment;
  };
  const Variables prte{{"PMIX_NAMESPACE", "n@1"}, {"SLURM_JOB_ID", "7"}, {"OMPI_COMM_WORLD_RANK", "0"}};
  const Variables hydra{
      {"PMI_SIZE", "4"}, {"PMI_RANK", "0"}, {"MPI_LOCALRANKID", "0"}, {"SLURM_JOB_ID", "7"}};
  const Variables small_hydra{
      {"PMI_SIZE", "2"}, {"PMI_RANK", "0"}, {"MPI_LOCALRANKID", "0"}, {"SLURM_JOB_ID", "7"}};
  const Variables agent{{"TORCHELASTIC_RUN_ID", "none"}, {"MASTER_PORT", "4001"}, {"SLURM_JOB_ID", "7"}};
  const Variables step{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  const std::vector<Case> cases{
      {"OpenMPI", prte, with(prte, step), "slurm-7"},
      {"Hydra, several ranks a node", hydra, with(hydra, step), "slurm-7"},
      {"Hydra, one rank a node: as many as the step has daemons", small_hydra, with(small_hydra, step),
       "slurm-7"},
      {"an agent of torchrun a step", with(agent, step), with(agent, {{"SLURM_STEP_ID", "1"}}), "slurm-7"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    EXPECT_EQ(resolve(one.one_rank).experiment, one.experiment);
    EXPECT_EQ(resolve(one.other_rank).experiment, one.experiment);
    EXPECT_EQ(resolve(one.one_rank).token, resolve(one.other_rank).token);
  }
}

TEST(Launch, ByHandHasNoToken) {
  EXPECT_FALSE(resolve({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"WANDB_RUN_ID", "x"}}).token);
}

TEST(Launch, ExplicitTokenWins) {
  EXPECT_EQ(resolve({{"RANKLOG_LAUNCH_ID", "mine"}, {"SLURM_JOB_ID", "7"}}).token, "mine");
}

// What all ranks of one launch see, and what the next launch sees instead.
TEST(Launch, TokenIsEqualWithinALaunchAndDiffersInTheNext) {
  struct Case {
    const char* what;
    Variables one_rank, other_rank, next_launch;
  };
  const std::vector<Case> cases{
      {"steps of one allocation",
       {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}},
       {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}},
       {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "1"}, {"SLURM_PROCID", "0"}}},
      {"a requeued job",
       {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}},
       {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_RESTART_COUNT", "0"}},
       {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_RESTART_COUNT", "1"}}},
      {"agents of torchrun from a step a node",
       {{"TORCHELASTIC_RUN_ID", "x"}, {"MASTER_PORT", "4001"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}},
       {{"TORCHELASTIC_RUN_ID", "x"}, {"MASTER_PORT", "4001"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "1"}},
       {{"TORCHELASTIC_RUN_ID", "x"},
        {"MASTER_PORT", "4077"},
        {"SLURM_JOB_ID", "7"},
        {"SLURM_STEP_ID", "2"}}},
      {"torchrun restarts its workers",
       {{"TORCHELASTIC_RUN_ID", "x"}, {"TORCHELASTIC_RESTART_COUNT", "0"}},
       {{"TORCHELASTIC_RUN_ID", "x"}, {"TORCHELASTIC_RESTART_COUNT", "0"}, {"RANK", "1"}},
       {{"TORCHELASTIC_RUN_ID", "x"}, {"TORCHELASTIC_RESTART_COUNT", "1"}}},
      {"mpirun: the first node has no step, the daemons' nodes have one",
       {{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_NAMESPACE", "n@1"}, {"SLURM_JOB_ID", "7"}},
       {{"OMPI_COMM_WORLD_RANK", "1"},
        {"PMIX_NAMESPACE", "n@1"},
        {"SLURM_JOB_ID", "7"},
        {"SLURM_STEP_ID", "0"}},
       {{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_NAMESPACE", "n@2"}, {"SLURM_JOB_ID", "7"}}},
      {"PMI names the job",
       {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "kvs_44_0"}},
       {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "kvs_44_0"}},
       {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "kvs_45_0"}}},
      {"workers restart in a requeued job",
       {{"TORCHELASTIC_RUN_ID", "x"},
        {"TORCHELASTIC_RESTART_COUNT", "1"},
        {"SLURM_JOB_ID", "7"},
        {"SLURM_RESTART_COUNT", "2"}},
       {{"TORCHELASTIC_RUN_ID", "x"},
        {"TORCHELASTIC_RESTART_COUNT", "1"},
        {"SLURM_JOB_ID", "7"},
        {"SLURM_RESTART_COUNT", "2"},
        {"RANK", "1"}},
       {{"TORCHELASTIC_RUN_ID", "x"},
        {"TORCHELASTIC_RESTART_COUNT", "2"},
        {"SLURM_JOB_ID", "7"},
        {"SLURM_RESTART_COUNT", "1"}}},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    const auto token = resolve(one.one_rank).token;
    ASSERT_TRUE(token);
    EXPECT_EQ(resolve(one.other_rank).token, token);
    EXPECT_NE(resolve(one.next_launch).token, token);
  }
}

TEST(Launch, RestartsAreCountedForTorchrunAndSlurm) {
  EXPECT_EQ(resolve({}).restart_count, 0);
  EXPECT_EQ(resolve({{"TORCHELASTIC_RUN_ID", "x"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}).restart_count, 2);
  EXPECT_EQ(resolve({{"SLURM_JOB_ID", "7"}, {"SLURM_RESTART_COUNT", "1"}}).restart_count, 1);
  EXPECT_EQ(resolve({{"TORCHELASTIC_RUN_ID", "x"},
                     {"TORCHELASTIC_RESTART_COUNT", "2"},
                     {"SLURM_JOB_ID", "7"},
                     {"SLURM_RESTART_COUNT", "1"}})
                .restart_count,
            3);
}

TEST(Launch, WishToResumeComesFromTheCallerThenTheVariableThenTheLauncher) {
  const auto wish = [](std::optional<Resume> given, bool restarted, const std::string& word) {
    return resolve_resume(given, restarted, fake_environment({{"RANKLOG_RESUME", word}}));
  };
  EXPECT_EQ(wish({}, false, ""), Resume::kNo);
  EXPECT_EQ(wish({}, true, ""), Resume::kIfThere);
  EXPECT_EQ(wish({}, false, "auto"), Resume::kIfThere);
  for (const char* word : {"1", "true", "YES"}) EXPECT_EQ(wish({}, true, word), Resume::kMust) << word;
  for (const char* word : {"0", "false", "no"}) EXPECT_EQ(wish({}, false, word), Resume::kNo) << word;
  EXPECT_EQ(wish(Resume::kIfThere, false, "1"), Resume::kIfThere);
  EXPECT_THROW((void)wish({}, false, "perhaps"), Error);
}

}  // namespace
}  // namespace ranklog
