// Whole jobs in which something is wrong: who is told what, and with which exit status.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "job.hpp"
#include "ranklog/trainer/checkpoint_folder.hpp"

namespace ranklog::test {
namespace {

using Ranks = std::vector<std::unique_ptr<Process>>;

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

class FailingJob : public Job {
 protected:
  Ranks start_ranks(int count, const Arguments& arguments) {
    const std::uint16_t port = pick_free_port();
    Ranks ranks;
    for (int rank = 0; rank < count; ++rank) ranks.push_back(start_rank(rank, count, port, arguments));
    return ranks;
  }
  static void wait_for_listener_on(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    bool heard = false;
    while (!heard && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(20ms);
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      heard = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      ::close(fd);
    }
    ASSERT_TRUE(heard);
  }
};

// The killed one is named by those that are left, whichever it was.
class KilledRank : public FailingJob, public testing::WithParamInterface<int> {};

TEST_P(KilledRank, IsNamedByTheOthersAndLosesNothing) {
  const Ranks ranks = start_ranks(
      4, {"--run_id", "job", "--epochs", "10000", "--checkpoint_interval", "50", "--timeout", "60"});
  ASSERT_TRUE(ranks[0]->wait_for_error_output("epoch ")) << ranks[0]->errors();
  const int victim = GetParam();
  ranks[static_cast<std::size_t>(victim)]->send(SIGKILL);
  for (int rank = 0; rank < 4; ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    Process& process = *ranks[static_cast<std::size_t>(rank)];
    if (rank == victim) {
      EXPECT_EQ(process.wait(), 128 + SIGKILL);
    } else {
      EXPECT_EQ(process.wait(90s), kExitFailed);
      expect_contains(process.errors(), "rank " + std::to_string(victim));
    }
    EXPECT_EQ(rank_file(rank).info().end_state,
              rank == victim ? std::nullopt : std::optional(EndState::kFailed));
    // Every step up to the last one, each once.
    const auto losses = series(rank_file(rank), "loss");
    ASSERT_GE(losses.size(), 22U);
    EXPECT_EQ(losses.size(), static_cast<std::size_t>(losses.rbegin()->first) + 1);
    EXPECT_TRUE(rank_file(rank).damage().empty());
    EXPECT_EQ(integrity(rank_file(rank).path()), "ok");
  }
}

INSTANTIATE_TEST_SUITE_P(Each, KilledRank, testing::Values(0, 3));

TEST_F(FailingJob, TheLauncherTellsOfAKilledRankAndStopsTheOthers) {
  const auto job = start({"--nproc_per_node", "2", "--run_id", "job", "--epochs", "10000"});
  ASSERT_TRUE(job->wait_for_error_output("epoch ")) << job->errors();
  const auto victim = rank_file(1).info().identity.pid;
  ASSERT_EQ(::kill(static_cast<pid_t>(victim), SIGKILL), 0);
  EXPECT_EQ(job->wait(90s), kExitFailed);
  expect_contains(job->errors(), "rank 1 (pid " + std::to_string(victim) + ") was killed by signal 9");
  expect_contains(job->errors(), "rank 0: rank 1");
  EXPECT_EQ(rank_file(0).info().end_state, EndState::kFailed);
}

// Its sockets stay open, and whoever asks it gets no answer, ever.
class StoppedRank : public FailingJob, public testing::WithParamInterface<int> {};

TEST_P(StoppedRank, IsNamedByTheOtherWithinTheTimeLimit) {
  const Ranks ranks = start_ranks(
      2, {"--run_id", "job", "--epochs", "10000", "--checkpoint_interval", "50", "--timeout", "20"});
  ASSERT_TRUE(ranks[0]->wait_for_error_output("epoch ")) << ranks[0]->errors();
  const int victim = GetParam();
  ranks[static_cast<std::size_t>(victim)]->send(SIGSTOP);
  Process& other = *ranks[static_cast<std::size_t>(1 - victim)];
  EXPECT_EQ(other.wait(120s), kExitFailed);
  expect_contains(other.errors(), "rank " + std::to_string(victim));
  EXPECT_EQ(rank_file(1 - victim).info().end_state, EndState::kFailed);
}

INSTANTIATE_TEST_SUITE_P(Each, StoppedRank, testing::Values(0, 1));

TEST_F(FailingJob, ARankZeroThatIsStoppedBeforeTheyMeetIsNamed) {
  const std::uint16_t port = pick_free_port();
  const auto zero = start_rank(0, 2, port, {"--timeout", "10"});
  wait_for_listener_on(port);
  zero->send(SIGSTOP);
  const auto one = start_rank(1, 2, port, {"--timeout", "10"});
  EXPECT_EQ(one->wait(120s), kExitFailed);
  expect_contains(one->errors(), "rank 0");
}

TEST_F(FailingJob, ARankZeroThatCannotSaveIsNamedWithItsReason) {
  std::filesystem::create_directories(folder());
  write_file(folder() / "checkpoints", "a file where the folder should be");
  const Ranks ranks = start_ranks(2, {"--run_id", "job", "--epochs", "1", "--timeout", "60"});
  EXPECT_EQ(ranks[0]->wait(), kExitFailed);
  expect_contains(ranks[0]->errors(), "cannot make the folder '" + (folder() / "checkpoints").string());
  EXPECT_EQ(ranks[1]->wait(), kExitFailed);
  expect_contains(ranks[1]->errors(), "rank 0 failed: cannot make the folder '");
  EXPECT_EQ(rank_file(1).info().end_state, EndState::kFailed);
}

// Killed at a moment when a checkpoint is begun and not published; whether or not it got further by then,
// what is there is whole.
TEST_F(FailingJob, AKillDuringASaveLeavesOnlyWholeCheckpoints) {
  const Ranks ranks = start_ranks(2, {"--run_id", "job", "--epochs", "10000", "--timeout", "60"});
  ASSERT_TRUE(ranks[0]->wait_for_error_output("epoch ")) << ranks[0]->errors();
  const auto checkpoints = folder() / "checkpoints";
  const auto begun = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(checkpoints)) {
      if (!std::filesystem::exists(entry.path() / "manifest.json")) return true;
    }
    return false;
  };
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!begun() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  for (const auto& rank : ranks) rank->send(SIGKILL);
  for (const auto& rank : ranks) rank->wait();
  const NewestCheckpoint newest = find_newest_checkpoint(checkpoints);
  ASSERT_TRUE(newest.found);
  EXPECT_TRUE(newest.skipped.empty()) << newest.skipped.front();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_GE(rank_file(rank).info().last_step.value_or(-1), newest.found->manifest.step - 1);
  }
  const auto resumed = start({"--nproc_per_node", "2", "--run_id", "job", "--resume", "--epochs",
                              std::to_string(newest.found->manifest.epoch + 1)});
  ASSERT_EQ(resumed->wait(), 0) << resumed->errors();
  expect_contains(resumed->errors(), "resuming at step " + std::to_string(newest.found->manifest.step));
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints)) {
    EXPECT_TRUE(std::filesystem::exists(entry.path() / "manifest.json")) << entry.path();
  }
}

TEST_F(FailingJob, RanksDoNotOutliveTheirLauncher) {
  const auto job = start({"--nproc_per_node", "2", "--run_id", "job", "--epochs", "10000"});
  ASSERT_TRUE(job->wait_for_error_output("epoch ")) << job->errors();
  job->send(SIGKILL);
  EXPECT_EQ(job->wait(), 128 + SIGKILL);
  const auto deadline = std::chrono::steady_clock::now() + 90s;
  const auto ended = [&] { return rank_file(0).info().end_state && rank_file(1).info().end_state; };
  while (!ended() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(50ms);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(rank_file(rank).info().end_state, EndState::kPreempted);
  EXPECT_TRUE(find_newest_checkpoint(folder() / "checkpoints").found);
}

// A parent that ignores SIGCHLD passes that on, and the kernel then keeps no child's status.
TEST_F(FailingJob, ALauncherWhoseParentIgnoredItsChildrenStillEnds) {
  Process job("/bin/sh",
              {"-c", "trap '' CHLD; exec \"$@\"", "sh", RANKLOG_TRAIN, "--nproc_per_node", "2", "--run_id",
               "job", "--epochs", "1", "--log_dir", log_dir().string()},
              {{"RANK", ""}, {"WORLD_SIZE", ""}, {"LOCAL_RANK", ""}, {"MASTER_PORT", ""}});
  EXPECT_EQ(job.wait(), 0) << job.errors();
  EXPECT_EQ(rank_file(1).info().end_state, EndState::kFinished);
}

TEST_F(FailingJob, ARankThatFailsIsNamedWithItsReasonByTheOthers) {
  // Rank 1 finds no room for its log: a file is where its folder should be.
  const std::uint16_t port = pick_free_port();
  write_file(dir_ / "a file", "");
  const auto zero = start_rank(0, 2, port, {"--run_id", "job", "--timeout", "60"});
  const Process one(RANKLOG_TRAIN,
                    {"--run_id", "job", "--timeout", "60", "--log_dir", (dir_ / "a file").string()},
                    {{"RANK", "1"},
                     {"LOCAL_RANK", "1"},
                     {"WORLD_SIZE", "2"},
                     {"LOCAL_WORLD_SIZE", "2"},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", std::to_string(port)}});
  EXPECT_EQ(zero->wait(), kExitFailed);
  expect_contains(zero->errors(), "rank 1 failed: ");
  expect_contains(zero->errors(), (dir_ / "a file").string());
}

TEST_F(FailingJob, APortInUseIsOneClearLine) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd, 8), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);

  const auto zero = start_rank(0, 2, port, {"--timeout", "3"});
  const auto one = start_rank(1, 2, port, {"--timeout", "3"});
  EXPECT_EQ(zero->wait(), kExitFailed);
  EXPECT_EQ(zero->errors(),
            "ranklog-train: rank 0: cannot serve the job's store at 127.0.0.1:" + std::to_string(port) +
                ": port " + std::to_string(port) +
                " is in use by another program; end that program, or choose another port for all "
                "ranks with MASTER_PORT or --master_port\n");
  EXPECT_EQ(one->wait(), kExitFailed);
  expect_contains(one->errors(), "127.0.0.1:" + std::to_string(port));
  ::close(fd);
}

TEST_F(FailingJob, ARankThatNeverComesIsNamedByAllThatCame) {
  const std::uint16_t port = pick_free_port();
  const std::vector<int> present{0, 1, 3};
  Ranks ranks;
  for (const int rank : present) ranks.push_back(start_rank(rank, 4, port, {"--timeout", "8"}));
  wait_for_listener_on(port);
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < present.size(); ++i) {
    SCOPED_TRACE("rank " + std::to_string(present[i]));
    EXPECT_EQ(ranks[i]->wait(), kExitFailed);
    expect_contains(
        ranks[i]->errors(),
        "rank 2 did not reach the barrier 'start' within 8 s; check that every rank is started, and "
        "reaches MASTER_ADDR:MASTER_PORT 127.0.0.1:" +
            std::to_string(port));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 18s);
  EXPECT_FALSE(std::filesystem::exists(log_dir())) << "no log was begun";
}

TEST_F(FailingJob, WithoutRankZeroTheOthersSayWhereTheyLooked) {
  const std::uint16_t port = pick_free_port();
  const auto one = start_rank(1, 2, port, {"--timeout", "1"});
  EXPECT_EQ(one->wait(), kExitFailed);
  expect_contains(one->errors(), "rank 0 did not come");
  expect_contains(one->errors(), "127.0.0.1:" + std::to_string(port));
}

TEST_F(FailingJob, ContradictingVariablesAreRefusedWithNamesAndValues) {
  const auto job = start_rank(4, 4, 29500, {}, {{"LOCAL_RANK", "0"}});
  EXPECT_EQ(job->wait(), kExitUsage);
  expect_contains(job->errors(), "RANK=4");
  expect_contains(job->errors(), "WORLD_SIZE=4");
}

TEST_F(FailingJob, SeveralRanksWithoutAnAddressAreRefused) {
  const auto job = start_rank(0, 2, 29500, {}, {{"MASTER_ADDR", ""}});
  EXPECT_EQ(job->wait(), kExitUsage);
  expect_contains(job->errors(), "MASTER_ADDR is not set");
}

TEST_F(FailingJob, ALogFolderThatCannotBeWrittenIsNamed) {
  write_file(log_dir(), "a file where the folder should be");
  const auto job = start({"--epochs", "1"});
  EXPECT_EQ(job->wait(), kExitFailed);
  expect_contains(job->errors(), log_dir().string());
}

TEST_F(FailingJob, AMissingDataFileIsNamed) {
  const auto job = start({"--data", (dir_ / "absent.csv").string()});
  EXPECT_EQ(job->wait(), kExitUsage);
  expect_contains(job->errors(), (dir_ / "absent.csv").string());
}

TEST_F(FailingJob, AMalformedDataFileIsNamedByRowAndColumn) {
  write_file(dir_ / "bad.csv", "1,2,x\n");
  const auto job = start({"--data", (dir_ / "bad.csv").string()});
  EXPECT_EQ(job->wait(), kExitUsage);
  EXPECT_EQ(job->errors(), "ranklog-train: data file '" + (dir_ / "bad.csv").string() +
                               "', row 1, column 3: found 'x', expected a pixel from 0 to 16\n");
}

TEST_F(FailingJob, AnUnknownStrategyIsRefused) {
  const auto job = start({"--log_strategy", "some"});
  EXPECT_EQ(job->wait(), kExitUsage);
  expect_contains(job->errors(), "some");
  expect_contains(job->errors(), "main");
}

TEST_F(FailingJob, AnUnknownFlagIsRefused) {
  const auto job = start({"--leaning_rate", "1"});
  EXPECT_EQ(job->wait(), kExitUsage);
  EXPECT_EQ(job->errors(),
            "ranklog-train: unknown flag --leaning_rate; did you mean --learning_rate? See 'ranklog-train "
            "--help'\n");
}

TEST_F(FailingJob, AFlagCutShortIsExplained) {
  const auto job = start({"--epoch", "2"});
  EXPECT_EQ(job->wait(), kExitUsage);
  expect_contains(job->errors(), "unknown flag --epoch; did you mean --epochs?");
}

TEST_F(FailingJob, ResumingWithAnotherWorldSizeIsRefused) {
  ASSERT_EQ(start({"--run_id", "job", "--epochs", "1"})->wait(), 0);
  const auto job = start({"--nproc_per_node", "2", "--run_id", "job", "--epochs", "2", "--resume"});
  EXPECT_EQ(job->wait(), kExitUsage) << job->errors();
  expect_contains(job->errors(), "the checkpoint was trained with 1 (--nproc_per_node or WORLD_SIZE)");
  EXPECT_EQ(rank_file(0).info().end_state, EndState::kFinished);
  EXPECT_FALSE(std::filesystem::exists(folder() / "rank-00000.1.db")) << "an attempt was begun";
  EXPECT_FALSE(std::filesystem::exists(folder() / "rank-00001.db")) << "an attempt was begun";
}

TEST_F(FailingJob, ABatchLargerThanTheDataIsRefusedBeforeThereIsALog) {
  const auto job = start({"--run_id", "job", "--batch_size", "5000"});
  EXPECT_EQ(job->wait(), kExitUsage);
  expect_contains(job->errors(), "--batch_size");
  EXPECT_FALSE(std::filesystem::exists(log_dir()));
}

TEST_F(FailingJob, NumbersThatAreNotFiniteAreRefusedInOneLine) {
  const std::vector<Arguments> flags{
      {"--lr", "nan"}, {"--lr", "inf"}, {"--momentum", "nan"}, {"--timeout", "nan"}};
  for (const Arguments& given : flags) {
    SCOPED_TRACE(given[0] + " " + given[1]);
    const auto job = start(given);
    EXPECT_EQ(job->wait(), kExitUsage);
    const std::string errors = job->errors();
    expect_contains(errors, given[0]);
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_FALSE(std::filesystem::exists(log_dir()));
  }
}

TEST_F(FailingJob, ARankOfAnotherLauncherStartsNoRanks) {
  const auto job = start_rank(0, 2, 29500, {"--nproc_per_node", "2"});
  EXPECT_EQ(job->wait(), kExitUsage);
  expect_contains(job->errors(), "--nproc_per_node starts ranks, but RANK=0 and WORLD_SIZE=2 say");
}

TEST_F(FailingJob, AJobThatIsStoppedBeforeItsRanksMeetEndsByThatSignal) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    const auto job = start({"--nproc_per_node", "1", "--nnodes", "2", "--master_addr", "127.0.0.1",
                            "--master_port", std::to_string(pick_free_port())});
    std::this_thread::sleep_for(1s);
    job->send(signal);
    EXPECT_EQ(job->wait(), 128 + signal);
    EXPECT_FALSE(std::filesystem::exists(log_dir()));
  }
}

TEST_F(FailingJob, ResumingAnUnknownRunIsRefused) {
  const auto job = start({"--resume"});
  EXPECT_EQ(job->wait(), kExitUsage);
  expect_contains(job->errors(), "--run_id");
}

TEST_F(FailingJob, HelpAndVersionGoToStandardOutput) {
  const auto help = start({"--help"});
  EXPECT_EQ(help->wait(), 0);
  expect_contains(help->output(), "--log_strategy");
  expect_contains(help->output(), "Exit status");
  const auto version = start({"--version"});
  EXPECT_EQ(version->wait(), 0);
  expect_contains(version->output(), "ranklog-train " RANKLOG_VERSION " (LibTorch ");
}

}  // namespace
}  // namespace ranklog::test
