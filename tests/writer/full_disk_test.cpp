// A disk that has no room, and one that gets room again.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "filler.hpp"
#include "helpers.hpp"

namespace ranklog {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::Filler;
using test::rows_in_drop_events;
using test::small_options;

constexpr std::size_t kFileBytes = std::size_t{40} << 10;  // less than a buffer of the tail

enum class Kind : std::uint8_t { kDisk, kFileLimit };

// A small disk: a tmpfs of its own where this process may mount one. Else, or if asked for, a limit on the
// size of each file.
class SmallDisk {
 public:
  explicit SmallDisk(Kind kind) {
    mounted_ = kind == Kind::kDisk && ::unshare(CLONE_NEWNS) == 0 &&
               ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               ::mount("ranklog", dir_.path().c_str(), "tmpfs", 0, "size=4m") == 0;
  }
  ~SmallDisk() {
    make_room();
    if (mounted_) ::umount2(dir_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // To the last block.
  void fill() const {
    if (!mounted_) return limit_files(kFileBytes);
    const int ballast = ::open((dir_ / "ballast").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const std::string block(4096, 'x');
    while (::write(ballast, block.data(), block.size()) > 0) continue;
    ::close(ballast);
  }
  void make_room() const {
    if (!mounted_) return limit_files(RLIM_INFINITY);
    std::error_code ignored;
    std::filesystem::remove(dir_ / "ballast", ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return dir_.path(); }

 private:
  static void limit_files(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }

  test::TempDir dir_;
  bool mounted_ = false;
};

class FullDiskTest : public ::testing::TestWithParam<Kind> {
 private:
  const test::ScopedEnvironment environment_{{}};
};

TEST_P(FullDiskTest, TrainingGoesOnAndRowsAreWrittenWhenSpaceReturns) {
  SmallDisk disk(GetParam());
  auto log = Writer::open(small_options(disk.path()));
  Filler filler(log);
  EXPECT_EQ(filler.log_one(), LogStatus::kOk);
  disk.fill();
  ASSERT_TRUE(filler.log_until_full()) << "the tail found room on a full disk";
  ASSERT_TRUE(filler.log_until(LogStatus::kDropped)) << "the queue never filled";
  const auto told = log.flush(5s);
  EXPECT_FALSE(told.durable);
  EXPECT_NE(told.message, "");
  EXPECT_EQ(told.dropped_rows, filler.dropped());
  for (int i = 0; i < 10; ++i) filler.log_one();

  disk.make_room();
  ASSERT_TRUE(filler.log_until(LogStatus::kOk, 20ms)) << "did not recover";
  for (int i = 0; i < 10; ++i) filler.log_one();
  const auto outcome = log.finish(EndState::kFinished, 0, 10s);
  EXPECT_EQ(outcome.dropped_rows, filler.dropped());
  EXPECT_EQ(test::integrity_check(log.path()), "ok");
  EXPECT_EQ(test::read_numbers(log.path(), "i"), filler.kept());
  const auto info = RankFile::open(log.path()).info();
  EXPECT_EQ(info.dropped_rows, filler.dropped());
  EXPECT_EQ(info.end_state, EndState::kFinished);
  EXPECT_EQ(rows_in_drop_events(log.path()), filler.dropped());
  EXPECT_EQ(test::list_folder(log.folder()), (std::vector<std::string>{"experiment.json", "rank-00000.db"}));
}

TEST_P(FullDiskTest, FinishEndsInTimeAndWhatWasWrittenIsReadable) {
  SmallDisk disk(GetParam());
  auto log = Writer::open(small_options(disk.path()));
  Filler filler(log);
  EXPECT_EQ(filler.log_one(), LogStatus::kOk);
  disk.fill();
  ASSERT_TRUE(filler.log_until(LogStatus::kDropped)) << "the queue never filled";
  const auto start = steady_clock::now();
  const auto outcome = log.finish(EndState::kFinished, 0, 20s);
  EXPECT_LT(steady_clock::now() - start, 5s) << "case C37";
  EXPECT_FALSE(outcome.durable);
  EXPECT_GE(outcome.dropped_rows, filler.dropped());
  EXPECT_NE(outcome.message, "");
  const auto found = test::read_numbers(log.path(), "i");
  EXPECT_TRUE(std::includes(found.begin(), found.end(), filler.safe().begin(), filler.safe().end()));
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  disk.make_room();  // without any, SQLite itself cannot open a file that has not ended
  EXPECT_EQ(test::integrity_check(log.path()), "ok");
}

// Rows that found no room in the tail must not be taken for a gap, nor be doubled, after a kill.
TEST_P(FullDiskTest, KillAfterRecoveryFindsEveryKeptRowOnce) {
  SmallDisk disk(GetParam());
  test::Pipe numbers;
  test::Child child([&] {
    numbers.close_reader();
    auto log = Writer::open(small_options(disk.path()));
    Filler filler(log);
    disk.fill();
    if (!filler.log_until_full()) return 1;
    disk.make_room();
    if (!filler.log_until(LogStatus::kOk, 20ms)) return 2;
    for (int i = 0; i < 5; ++i) filler.log_one();
    // What was in memory alone is safe from then on.
    if (!log.flush(10s).durable) return 4;
    for (int i = 0; i < 5; ++i) filler.log_one();
    for (const auto number : filler.kept()) numbers.write(&number, sizeof number);
    ::_exit(0);
    return 3;
  });
  numbers.close_writer();
  std::vector<std::int64_t> kept;
  for (std::int64_t number = 0; numbers.read(&number, sizeof number);) kept.push_back(number);
  ASSERT_EQ(child.wait(), 0);
  EXPECT_EQ(test::read_numbers(disk.path() / "project" / "job" / "rank-00000.db", "i"), kept);
}

INSTANTIATE_TEST_SUITE_P(Full, FullDiskTest, ::testing::Values(Kind::kDisk, Kind::kFileLimit),
                         [](const auto& kind) { return kind.param == Kind::kDisk ? "Disk" : "FileLimit"; });

}  // namespace
}  // namespace ranklog
