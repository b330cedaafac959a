// File systems without WAL, shared memory or locks (case C8): a log there is complete all the same.

#include <gtest/gtest.h>

#include <sqlite3.h>
#include <cstdlib>

#include <algorithm>
#include <chrono>
#include <thread>

#include "helpers.hpp"
#include "ranklog/schema/durability.hpp"
#include "support/refusing_vfs.hpp"

namespace ranklog {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int kRows = 10'000;

class JournalModeTest : public ::testing::Test {
 protected:
  JournalModeTest() {
    options_.seal_interval = 50ms;
    options_.chunk_rows = 512;
    options_.queue_bytes = std::size_t{4} << 20;
  }

  Writer open_and_log(int rows = kRows) {
    ::testing::internal::CaptureStderr();
    auto log = Writer::open(options_);
    told_ = ::testing::internal::GetCapturedStderr();
    for (int i = 0; i < rows; ++i) EXPECT_EQ(log.log(i, {{"i", i}}), LogStatus::kOk);
    return log;
  }
  void expect_round_trip(const std::filesystem::path& path, int rows = kRows) {
    EXPECT_EQ(test::integrity_check(path), "ok");
    const auto numbers = test::read_numbers(path, "i");
    ASSERT_EQ(numbers.size(), static_cast<std::size_t>(rows));
    for (int i = 0; i < rows; ++i) ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i);
  }
  static Durability durability_of(const std::filesystem::path& path) {
    return parse_durability(RankFile::open(path).info().durability).value();
  }

  const test::ScopedEnvironment environment_{{}};
  const test::TempDir dir_;
  Options options_ = test::options_in(dir_.path());
  std::string told_;
};

// What file systems say that cannot map the -shm file, cannot open it, or cannot lock it.
class WithoutWal : public JournalModeTest, public ::testing::WithParamInterface<int> {};

TEST_P(WithoutWal, FallsBackTellsItOnceAndKeepsEveryRow) {
  test::RefusingVfs vfs;
  vfs.shared_memory = GetParam();
  auto log = open_and_log();
  EXPECT_EQ(std::count(told_.begin(), told_.end(), '\n'), 1) << told_;
  EXPECT_NE(told_.find("journal_mode=persist"), std::string::npos) << told_;
  const auto live = durability_of(log.path());
  EXPECT_EQ(live.journal, JournalMode::kPersist);
  EXPECT_TRUE(live.locks);
  EXPECT_NE(live.reason.find("WAL"), std::string::npos) << live.reason;
  EXPECT_TRUE(log.flush(10s).durable);
  EXPECT_TRUE(log.finish(EndState::kFinished, 0, 10s).durable);
  expect_round_trip(log.path());
  EXPECT_EQ(durability_of(log.path()).journal, JournalMode::kPersist);
  EXPECT_EQ(test::list_folder(log.folder()), (std::vector<std::string>{"experiment.json", "rank-00000.db"}));
}

INSTANTIATE_TEST_SUITE_P(SharedMemory, WithoutWal,
                         ::testing::Values(SQLITE_PROTOCOL, SQLITE_CANTOPEN, SQLITE_IOERR_SHMMAP,
                                           SQLITE_IOERR_SHMOPEN, SQLITE_READONLY_CANTINIT));

TEST_F(JournalModeTest, FallsBackWhereSharedMemoryCannotBeLocked) {
  test::RefusingVfs vfs;
  vfs.shared_locks = SQLITE_IOERR_SHMLOCK;
  auto log = open_and_log();
  EXPECT_EQ(durability_of(log.path()).journal, JournalMode::kPersist);
  EXPECT_TRUE(log.finish(EndState::kFinished, 0, 10s).durable);
  expect_round_trip(log.path());
}

// ENOLCK, as NFS without its lock daemon has it, comes as "busy"; Lustre without -o flock gives ENOSYS.
class WithoutLocks : public JournalModeTest, public ::testing::WithParamInterface<int> {};

TEST_P(WithoutLocks, IsWrittenWithoutThem) {
  {
    test::RefusingVfs vfs;
    vfs.locks = GetParam();
    auto log = open_and_log();
    EXPECT_NE(told_.find("without locks"), std::string::npos) << told_;
    EXPECT_TRUE(log.flush(10s).durable);
    EXPECT_TRUE(log.finish(EndState::kFinished, 0, 10s).durable);
  }
  const auto path = dir_.path() / "project" / "job" / "rank-00000.db";
  EXPECT_FALSE(durability_of(path).locks);
  expect_round_trip(path);
}

INSTANTIATE_TEST_SUITE_P(Refusal, WithoutLocks, ::testing::Values(SQLITE_IOERR_LOCK, SQLITE_BUSY));

// An NFS lock server that is gone when the log is opened.
TEST_F(JournalModeTest, LockCallsThatHangFromTheStartAreDoneWithout) {
  test::RefusingVfs vfs;
  vfs.hang = true;
  const auto start = steady_clock::now();
  auto log = open_and_log();
  EXPECT_LT(steady_clock::now() - start, 20s);
  EXPECT_NE(told_.find("without locks"), std::string::npos) << told_;
  EXPECT_TRUE(log.flush(5s).durable);
  EXPECT_TRUE(log.finish(EndState::kFinished, 0, 10s).durable);
  vfs.hang = false;
  expect_round_trip(log.path());
}

// One that goes away later: the thread that seals hangs, and nobody else.
TEST_F(JournalModeTest, LockCallsThatHangLaterHoldUpTheBackgroundThreadAlone) {
  test::RefusingVfs vfs;
  options_.journal = "persist";
  options_.tail = "append";
  std::filesystem::path path;
  {
    auto log = open_and_log(100);
    path = log.path();
    vfs.hang = true;
    const auto hung = steady_clock::now() + 10s;
    for (int i = 100; vfs.hanging == 0 && steady_clock::now() < hung; ++i) {
      ASSERT_EQ(log.log(i, {{"i", i}}), LogStatus::kOk);
      std::this_thread::sleep_for(1ms);
    }
    ASSERT_GT(vfs.hanging, 0);
    auto slowest = steady_clock::duration::zero();
    for (int i = 0; i < 100; ++i) {
      const auto before = steady_clock::now();
      EXPECT_EQ(log.log(0, {{"late", i}}), LogStatus::kOk);
      slowest = std::max(slowest, steady_clock::now() - before);
    }
    EXPECT_LT(slowest, 1s);
    auto start = steady_clock::now();
    EXPECT_FALSE(log.flush(300ms).durable);
    EXPECT_LT(steady_clock::now() - start, 2s);
    start = steady_clock::now();
    EXPECT_FALSE(log.finish(EndState::kFinished, 0, 300ms).durable);
    EXPECT_LT(steady_clock::now() - start, 2s);
    vfs.hang = false;
    EXPECT_TRUE(log.finish(EndState::kFinished, 0, 10s).durable);
  }
  EXPECT_EQ(RankFile::open(path).info().end_state, EndState::kFinished);
  EXPECT_EQ(test::integrity_check(path), "ok");
}

TEST_F(JournalModeTest, EachOneThatIsForcedIsReadBack) {
  for (const std::string mode : {"wal", "persist", "truncate", "delete"}) {
    options_.experiment = mode;
    options_.journal = mode;
    auto log = open_and_log(2000);
    EXPECT_EQ(told_, "");
    EXPECT_EQ(to_string(durability_of(log.path()).journal), mode);
    EXPECT_TRUE(log.finish(EndState::kFinished, 0, 10s).durable);
    expect_round_trip(log.path(), 2000);
    EXPECT_EQ(test::list_folder(log.folder()).size(), 2U) << mode;
  }
}

TEST_F(JournalModeTest, ALocalFileSystemHasWalAndSaysWhy) {
  const test::ScopedEnvironment ext4(std::map<std::string, std::string>{{"RANKLOG_FILE_SYSTEM", "ext4"}});
  auto log = open_and_log(1);
  const auto found = durability_of(log.path());
  EXPECT_EQ(found.journal, JournalMode::kWal);
  EXPECT_TRUE(found.locks);
  EXPECT_EQ(found.file_system, "ext4");
  const char* forced = std::getenv("RANKLOG_TAIL");
  EXPECT_EQ(found.tail, forced != nullptr ? forced : "mapped");
  EXPECT_NE(found.reason, "");
  EXPECT_EQ(told_, "");
}

}  // namespace
}  // namespace ranklog
