// Readers beside a log that is being written, copies of it, and many logs in one process.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "helpers.hpp"
#include "support/process.hpp"

namespace ranklog {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class ReadingTest : public ::testing::Test {
 protected:
  const test::ScopedEnvironment environment_{{}};
  const test::TempDir dir_;
  Options options_ = test::options_in(dir_.path());
};

// How many rows there are; the first `logged` of them must be 0, 1, 2 ...
std::int64_t count_rows(const std::filesystem::path& path, std::int64_t logged) {
  const auto numbers = test::read_numbers(path, "i");
  for (std::size_t i = 0; i < std::min(numbers.size(), static_cast<std::size_t>(logged)); ++i) {
    if (numbers[i] != static_cast<std::int64_t>(i))
      throw std::runtime_error("row " + std::to_string(i) + " is missing");
  }
  return static_cast<std::int64_t>(numbers.size());
}

class Readers : public ReadingTest, public ::testing::WithParamInterface<const char*> {};

// A read transaction that lasts for seconds, as another program may have it.
TEST_P(Readers, NeverBlockTheWriterNorMissARow) {
  options_.journal = GetParam();
  options_.seal_interval = 100ms;
  options_.sync_interval = 50ms;
  auto log = Writer::open(options_);
  std::atomic<std::int64_t> logged{0};
  std::atomic<bool> stop{false};
  for (; logged < 10; ++logged) ASSERT_EQ(log.log(logged, {{"i", logged.load()}}), LogStatus::kOk);
  ASSERT_TRUE(log.flush().durable);

  std::vector<std::thread> readers;
  std::atomic<int> reads{0};
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&] {
      while (!stop) {
        const auto before = logged.load();
        try {
          EXPECT_GE(count_rows(log.path(), before), before);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
        ++reads;
        std::this_thread::sleep_for(20ms);
      }
    });
  }
  test::Process long_reader("/usr/bin/env", {"sqlite3", "-readonly", log.path().string(), "BEGIN",
                                             "SELECT count(*) FROM meta", ".shell sleep 5", "COMMIT"});
  const auto patience = steady_clock::now() + 20s;
  while (long_reader.output().empty() && steady_clock::now() < patience) std::this_thread::sleep_for(10ms);
  ASSERT_NE(long_reader.output(), "") << long_reader.errors();
  auto longest = steady_clock::duration::zero();
  const auto end = steady_clock::now() + 4s;
  for (auto before = steady_clock::now(); before < end; before = steady_clock::now()) {
    ASSERT_EQ(log.log(logged, {{"i", logged.load()}}), LogStatus::kOk);
    ++logged;
    longest = std::max(longest, steady_clock::now() - before);
    std::this_thread::sleep_for(1ms);
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(long_reader.wait(), 0) << long_reader.errors();
  EXPECT_GT(reads, 0);
  EXPECT_LT(longest, 2s) << "log() waited for a reader";
  EXPECT_TRUE(log.finish(EndState::kFinished, 0, 20s).durable);
  EXPECT_EQ(count_rows(log.path(), logged), logged);
  EXPECT_EQ(test::integrity_check(log.path()), "ok");
}

INSTANTIATE_TEST_SUITE_P(Journal, Readers, ::testing::Values("wal", "persist"));

class Copies : public ReadingTest, public ::testing::WithParamInterface<const char*> {};

// A copy made file by file is of no one moment. It may lack the last rows, or say that it is torn; it may not
// be wrong and say nothing.
TEST_P(Copies, MadeWhileItIsWrittenAreNeverSilentlyWrong) {
  options_.journal = GetParam();
  options_.seal_interval = 200ms;
  auto log = Writer::open(options_);
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> logged{0};
  std::thread writer([&] {
    for (; !stop; ++logged) {
      log.log(logged, {{"i", logged.load()}});
      std::this_thread::sleep_for(1ms);
    }
  });
  int torn = 0;
  for (int copy = 0; copy < 100 && !HasFatalFailure(); ++copy) {
    const auto to = dir_ / ("copy-" + std::to_string(copy));
    const auto before = logged.load();
    test::Process cp("/usr/bin/env", {"cp", "-r", log.folder().string(), to.string()});
    const int status = cp.wait();  // 1: a file went away meanwhile
    const auto after = logged.load();
    try {
      const auto file = RankFile::open(to / "rank-00000.db");
      std::vector<std::int64_t> found;
      for (std::size_t i = 0; i < file.row_groups().size(); ++i) {
        for (const auto step : file.load(i).step) found.push_back(step);
      }
      std::sort(found.begin(), found.end());
      EXPECT_TRUE(std::adjacent_find(found.begin(), found.end()) == found.end());
      const bool complete = !found.empty() && found.back() + 1 == static_cast<std::int64_t>(found.size());
      const bool lacks_moments = complete && found.back() + 1 >= before && found.back() <= after;
      if (!lacks_moments && file.damage().empty() && status == 0) {
        ADD_FAILURE() << "copy " << copy << " has " << found.size() << " rows of " << before << " to "
                      << after << " and says nothing";
      }
      if (!file.damage().empty() || status != 0) ++torn;
    } catch (const Error& error) {
      ++torn;  // named
    }
    std::filesystem::remove_all(to);
  }
  stop = true;
  writer.join();
  std::printf("{\"copies\": 100, \"torn\": %d}\n", torn);
  EXPECT_TRUE(log.finish().durable);
}

INSTANTIATE_TEST_SUITE_P(Journal, Copies, ::testing::Values("wal", "persist"));

int open_descriptors() {
  int count = -1;  // the listing's own
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += entry.path().empty() ? 0 : 1;
  return count;
}

TEST_F(ReadingTest, AWriterHoldsAtMostEightDescriptors) {
  for (const char* journal : {"wal", "persist", "truncate", "delete"}) {
    const int before = open_descriptors();
    options_.experiment = journal;
    options_.journal = journal;
    options_.seal_interval = 20ms;
    options_.sync_interval = 5ms;
    auto log = Writer::open(options_);
    int most = 0;
    for (int i = 0; i < 200; ++i) {
      log.log(i, {{"i", i}});
      most = std::max(most, open_descriptors() - before);
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_LE(most, 8) << journal;
    EXPECT_TRUE(log.finish().durable);
    EXPECT_EQ(open_descriptors(), before) << journal;
  }
}

TEST_F(ReadingTest, AThousandWritersOneAfterAnotherNeedNoMoreThan64Descriptors) {
  // In memory where that is to be had: it is about descriptors, and the device would take minutes to sync.
  const std::filesystem::path memory = "/dev/shm";
  if (std::filesystem::exists(memory))
    options_.log_dir = memory / ("ranklog-test-" + std::to_string(::getpid()));
  test::Child child([&] {
    const rlimit limit{64, 64};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
    for (int i = 0; i < 1000; ++i) {
      options_.experiment = std::to_string(i);
      auto log = Writer::open(options_);
      if (log.log({{"i", 1}}) != LogStatus::kOk) return 2;
      // Some end, some only go away.
      if (i % 2 == 0 && !log.finish().durable) return 3;
    }
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  std::filesystem::remove_all(options_.log_dir);
}

// Nothing calls finish(): exit() with the writer in a static variable, and with it alive on the heap.
TEST_F(ReadingTest, ProcessExitWithoutFinishKeepsEveryRow) {
  for (const bool leaked : {false, true}) {
    options_.experiment = leaked ? "leaked" : "static";
    const auto path = dir_ / "project" / options_.experiment / "rank-00000.db";
    test::Child child([&] {
      auto* leak = new Writer(Writer::open(options_));
      static std::unique_ptr<Writer> owner;
      if (!leaked) owner.reset(leak);
      for (int i = 0; i < 100; ++i) leak->log(i, {{"i", i}});
      std::exit(0);
      return 1;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(count_rows(path, 100), 100);
    EXPECT_FALSE(RankFile::open(path).info().end_time_ns);
  }
}

}  // namespace
}  // namespace ranklog
