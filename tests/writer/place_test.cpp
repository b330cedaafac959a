#include <gtest/gtest.h>

#include <vector>

#include "fake_environment.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/writer/launch.hpp"

namespace ranklog {

static bool operator==(const Place& a, const Place& b) {
  return a.rank == b.rank && a.local_rank == b.local_rank && a.world_size == b.world_size &&
         a.local_world_size == b.local_world_size && a.node == b.node;
}

static void PrintTo(const Place& place, std::ostream* out) {
  *out << "rank " << place.rank << " of " << place.world_size << ", local " << place.local_rank << " of "
       << place.local_world_size << ", node " << place.node;
}

namespace {

using test::fake_environment;
using test::Variables;

struct Known {
  const char* what;
  Variables variables;
  Place place;
};

const Variables kTorchrun{{"RANK", "5"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"}, {"LOCAL_WORLD_SIZE", "4"}};
const Variables kSlurm{{"SLURM_JOB_ID", "77"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_PROCID", "5"},
                       {"SLURM_LOCALID", "2"},
                       {"SLURM_NODEID", "1"},
                       {"SLURM_STEP_NUM_TASKS", "8"},
                       {"SLURM_STEP_TASKS_PER_NODE", "3,5"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"OMPI_COMM_WORLD_NODE_RANK", "1"}};

Variables join(Variables a, const Variables& b) {
  a.insert(b.begin(), b.end());
  return a;
}

const std::vector<Known> kKnown{
    {"no launcher is one process", {}, {0, 0, 1, 1, 0}},
    {"empty variables are no launcher", {{"RANK", ""}, {"WORLD_SIZE", ""}}, {0, 0, 1, 1, 0}},
    {"torchrun, node after node", kTorchrun, {5, 1, 8, 4, 1}},
    {"torchrun tells the node", join(kTorchrun, {{"GROUP_RANK", "1"}}), {5, 1, 8, 4, 1}},
    {"torchrun, nodes of different sizes",
     {{"RANK", "3"},
      {"LOCAL_RANK", "0"},
      {"WORLD_SIZE", "5"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "1"}},
     {3, 0, 5, 2, 1}},
    {"a missing local rank is derived where nodes are even",
     {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_WORLD_SIZE", "4"}},
     {5, 1, 8, 4, 1}},
    {"rank and world of one process", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, {0, 0, 1, 1, 0}},
    {"OpenMPI; its node rank is no node", kOpenMpi, {3, 1, 4, 2, 1}},
    {"MPICH by Hydra",
     {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}},
     {2, 0, 4, 2, 1}},
    {"PMI with its own local names",
     {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"PMI_LOCAL_RANK", "1"}, {"PMI_LOCAL_SIZE", "2"}},
     {3, 1, 4, 2, 1}},
    {"Slurm, uneven nodes", kSlurm, {5, 2, 8, 5, 1}},
    {"Slurm, repeated nodes",
     {{"SLURM_PROCID", "6"},
      {"SLURM_LOCALID", "0"},
      {"SLURM_NODEID", "3"},
      {"SLURM_NTASKS", "7"},
      {"SLURM_TASKS_PER_NODE", "2(x3),1"}},
     {6, 0, 7, 1, 3}},
    {"Slurm, ranks dealt out in turn",
     {{"SLURM_PROCID", "3"},
      {"SLURM_LOCALID", "1"},
      {"SLURM_NODEID", "1"},
      {"SLURM_NTASKS", "4"},
      {"SLURM_TASKS_PER_NODE", "2(x2)"}},
     {3, 1, 4, 2, 1}},
    {"Slurm without a layout",
     {{"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "1"}, {"SLURM_NTASKS", "8"}},
     {5, 1, 8, 4, 1}},
    {"a job's layout does not fit its smaller step",
     {{"SLURM_PROCID", "0"},
      {"SLURM_LOCALID", "0"},
      {"SLURM_NODEID", "0"},
      {"SLURM_STEP_NUM_TASKS", "2"},
      {"SLURM_TASKS_PER_NODE", "4(x2)"}},
     {0, 0, 2, 2, 0}},
    {"a batch script is one process",
     {{"ENVIRONMENT", "BATCH"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "4"}},
     {0, 0, 1, 1, 0}},
    {"srun inside a batch script", join(kSlurm, {{"ENVIRONMENT", "BATCH"}}), {5, 2, 8, 5, 1}},
    {"an allocation's shell is one process",
     {{"SLURM_JOB_ID", "77"}, {"SLURM_NTASKS", "8"}},
     {0, 0, 1, 1, 0}},
    {"torchrun inside srun: the agent's task is not the worker's",
     join(kTorchrun, {{"SLURM_PROCID", "1"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NODEID", "1"},
                      {"SLURM_STEP_NUM_TASKS", "2"}}),
     {5, 1, 8, 4, 1}},
    {"mpirun inside a batch script",
     join(kOpenMpi, {{"ENVIRONMENT", "BATCH"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}),
     {3, 1, 4, 2, 1}},
    {"torchrun started by mpirun, an agent a node",
     join(kTorchrun, {{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}),
     {5, 1, 8, 4, 1}},
    {"srun with PMIx: Slurm fills what PMIx does not tell",
     join(kSlurm, {{"PMIX_RANK", "5"}}),
     {5, 2, 8, 5, 1}},
    {"srun with PMI-2", join(kSlurm, {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}), {5, 2, 8, 5, 1}},
    {"RANK exported from SLURM_PROCID", join(kSlurm, {{"RANK", "5"}, {"WORLD_SIZE", "8"}}), {5, 2, 8, 5, 1}},
    {"LOCAL_RANK exported for an MPI job", join(kOpenMpi, {{"LOCAL_RANK", "1"}}), {3, 1, 4, 2, 1}},
};

TEST(Place, IsFoundForEveryLauncher) {
  for (const auto& known : kKnown) {
    SCOPED_TRACE(known.what);
    EXPECT_EQ(resolve_place({}, fake_environment(known.variables)), known.place);
  }
}

struct Refused {
  const char* what;
  Variables variables;
  std::vector<std::string> named;  // what the message must hold
};

const std::vector<Refused> kRefused{
    {"rank at the world size",
     {{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}},
     {"RANK=4", "WORLD_SIZE=4"}},
    {"not a number", {{"RANK", "two"}, {"WORLD_SIZE", "4"}}, {"RANK=two"}},
    {"a negative number", {{"RANK", "-1"}, {"WORLD_SIZE", "4"}}, {"RANK=-1"}},
    {"a number with a tail", {{"RANK", "1x"}, {"WORLD_SIZE", "4"}}, {"RANK=1x"}},
    {"a number too great", {{"RANK", "99999999999"}, {"WORLD_SIZE", "4"}}, {"RANK=99999999999"}},
    {"no world size", {{"RANK", "1"}, {"LOCAL_RANK", "1"}}, {"RANK=1", "world size"}},
    {"no rank", {{"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}, {"WORLD_SIZE=4", "rank is not known"}},
    {"a local rank alone", {{"LOCAL_RANK", "0"}}, {"LOCAL_RANK=0"}},
    {"no local rank and no local size", {{"RANK", "1"}, {"WORLD_SIZE", "4"}}, {"RANK=1", "LOCAL_RANK"}},
    {"no local rank on rank 0 either", {{"RANK", "0"}, {"WORLD_SIZE", "4"}}, {"RANK=0", "LOCAL_RANK"}},
    {"no local rank and uneven nodes",
     {{"RANK", "1"}, {"WORLD_SIZE", "5"}, {"LOCAL_WORLD_SIZE", "2"}},
     {"WORLD_SIZE=5", "LOCAL_WORLD_SIZE=2"}},
    {"no local rank and ranks dealt out in turn",
     {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}, {"GROUP_RANK", "1"}},
     {"GROUP_RANK=1", "LOCAL_RANK"}},
    {"local rank at the local size",
     {{"RANK", "1"},
      {"WORLD_SIZE", "4"},
      {"LOCAL_RANK", "2"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "0"}},
     {"LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"}},
    {"a node greater than the job",
     {{"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "4"},
      {"GROUP_RANK", "0"}},
     {"WORLD_SIZE=2", "LOCAL_WORLD_SIZE=4"}},
    {"local rank beyond the local size, and no node",
     {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "7"}, {"LOCAL_WORLD_SIZE", "2"}},
     {"local rank must be below", "LOCAL_RANK=7", "LOCAL_WORLD_SIZE=2"}},
    {"no node and no local size",
     {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}},
     {"node", "LOCAL_WORLD_SIZE"}},
    {"PMIx alone tells no size", {{"PMIX_RANK", "1"}}, {"PMIX_RANK=1", "world size"}},
    {"two launchers that contradict each other",
     {{"WORLD_SIZE", "8"}, {"SLURM_PROCID", "1"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "2"}},
     {"WORLD_SIZE=8", "SLURM_NTASKS=2"}},
};

TEST(Place, ContradictionsAndGapsAreRefusedByName) {
  for (const auto& refused : kRefused) {
    SCOPED_TRACE(refused.what);
    try {
      const Place place = resolve_place({}, fake_environment(refused.variables));
      ADD_FAILURE() << "accepted as rank " << place.rank << ", local rank " << place.local_rank;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      for (const auto& name : refused.named) {
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Place, ExplicitOptionsWinOverTheLauncher) {
  const auto environment = fake_environment(kTorchrun);
  EXPECT_EQ(resolve_place({.rank = 1, .local_rank = 1, .world_size = 2, .local_world_size = 2}, environment),
            (Place{1, 1, 2, 2, 0}));
  EXPECT_EQ(resolve_place({.node = 7}, environment), (Place{5, 1, 8, 4, 7}));
  EXPECT_EQ(resolve_place({.local_rank = 2, .node = 1}, environment), (Place{5, 2, 8, 4, 1}));
}

TEST(Place, ExplicitOptionsThatContradictAreNamed) {
  try {
    (void)resolve_place({.rank = 3, .local_rank = 0, .world_size = 2, .node = 0}, fake_environment({}));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank=3"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("world_size=2"), std::string::npos) << error.what();
  }
}

TEST(Place, LocalRanksOfTwoNodesOfFourAreZeroForRanksZeroAndFour) {
  std::vector<int> firsts;
  for (int rank = 0; rank < 8; ++rank) {
    const auto place = resolve_place(
        {},
        fake_environment({{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "8"}, {"LOCAL_WORLD_SIZE", "4"}}));
    if (place.local_rank == 0) firsts.push_back(rank);
  }
  EXPECT_EQ(firsts, (std::vector<int>{0, 4}));
}

// What only even nodes would make true is marked, for those who can ask the other ranks.
TEST(Place, WhatWasWorkedOutByCountingIsMarked) {
  EXPECT_TRUE(resolve_place({}, fake_environment(kOpenMpi)).if_nodes_are_even);
  EXPECT_TRUE(
      resolve_place({}, fake_environment({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_WORLD_SIZE", "4"}}))
          .if_nodes_are_even);
  EXPECT_FALSE(resolve_place({}, fake_environment(kSlurm)).if_nodes_are_even);
  EXPECT_FALSE(resolve_place({}, fake_environment(join(kTorchrun, {{"GROUP_RANK", "1"}}))).if_nodes_are_even);
  EXPECT_FALSE(
      resolve_place({},
                    fake_environment(
                        {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}))
          .if_nodes_are_even)
      << "one node is even";
}

TEST(Place, ReadPlaceLeavesOpenWhatTheLauncherDoesNotSay) {
  const KnownPlace known = read_place({}, fake_environment(kOpenMpi));
  EXPECT_EQ(known.rank, 3);
  EXPECT_EQ(known.world_size, 4);
  EXPECT_EQ(known.local_rank, 1);
  EXPECT_EQ(known.local_world_size, 2);
  EXPECT_EQ(known.node, std::nullopt);
  const KnownPlace bare = read_place({}, fake_environment({{"RANK", "1"}, {"WORLD_SIZE", "5"}}));
  EXPECT_EQ(bare.local_rank, std::nullopt);
  EXPECT_EQ(bare.local_world_size, std::nullopt);
  const KnownPlace alone = read_place({}, fake_environment({}));
  EXPECT_EQ(alone.world_size, 1);
  EXPECT_EQ(alone.node, 0);
}

}  // namespace
}  // namespace ranklog
