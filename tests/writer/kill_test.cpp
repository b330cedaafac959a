// What survives when the process dies at a moment that nobody chose.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
#include <random>
#include <thread>

#include "helpers.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int kThreads = 4;
constexpr int kRowsPerMillisecond = 25;  // of each thread: 100,000 a second in all

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRounds = 5;
#else
constexpr int kRounds = 50;
#endif

enum class Death : std::int32_t { kNone, kKilled, kAbort, kSegfault, kExit };

// Seen by the test and by the process that dies.
struct Shared {
  std::atomic<std::int64_t> acknowledged[kThreads];
  std::atomic<Death> order;
};

class SharedMemory {
 public:
  SharedMemory()
      : shared_(new(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                           0)) Shared{}) {}
  ~SharedMemory() { ::munmap(shared_, sizeof(Shared)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  Shared* operator->() const { return shared_; }

 private:
  Shared* shared_;
};

void log_paced(Writer& log, int thread, const SharedMemory& shared) {
  const std::string key = "of " + std::to_string(thread);
  const auto start = steady_clock::now();
  for (std::int64_t row = 0;; ++row) {
    if (row % kRowsPerMillisecond == 0) {
      std::this_thread::sleep_until(start + std::chrono::milliseconds(row / kRowsPerMillisecond));
    }
    if (log.log(row, {{"thread", thread}, {key, row}, {"value", static_cast<double>(row) * 0.5}}) !=
        LogStatus::kOk) {
      ::_exit(3);
    }
    shared->acknowledged[thread].store(row + 1);
  }
}

void die(Death death) {
  if (death == Death::kAbort) std::abort();
  if (death == Death::kSegfault) std::raise(SIGSEGV);
  ::_exit(7);
}

int log_until_death(const Options& options, const SharedMemory& shared) {
  for (const int signal : {SIGABRT, SIGSEGV}) std::signal(signal, SIG_DFL);
  auto log = Writer::open(options);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&log, &shared, thread] { log_paced(log, thread, shared); });
  }
  while (shared->order.load() == Death::kNone) std::this_thread::sleep_for(100us);
  die(shared->order.load());
  return 4;
}

// Rows 0, 1, 2 ... of each thread, each once, in order; the count of each thread.
std::vector<std::int64_t> count_rows(const std::filesystem::path& path) {
  std::vector<std::int64_t> next(kThreads, 0);
  std::uint64_t last_sequence = 0;
  for (const auto& row : test::read_rows(path)) {
    const auto thread = row.values.at("thread").view().as_int64();
    const auto number = row.values.at("of " + std::to_string(thread)).view().as_int64();
    EXPECT_EQ(number, next.at(static_cast<std::size_t>(thread))++);
    EXPECT_EQ(row.step, number);
    EXPECT_EQ(row.values.at("value").view().as_double(), static_cast<double>(number) * 0.5);
    EXPECT_GT(row.sequence, last_sequence);  // a number may belong to a row that was not finished
    last_sequence = row.sequence;
  }
  return next;
}

void expect_all_acknowledged(const std::filesystem::path& path, const SharedMemory& shared) {
  std::vector<std::int64_t> found(kThreads, 0);
  try {
    found = count_rows(path);
    EXPECT_EQ(test::integrity_check(path), "ok");
    EXPECT_TRUE(RankFile::open(path).damage().empty());
  } catch (const Error& error) {
    // Died before there was a file, or before its tables were there.
    EXPECT_TRUE(error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kDamaged) << error.what();
  }
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    // At most the row that was being logged is there without having been acknowledged.
    const std::int64_t acknowledged = shared->acknowledged[thread].load();
    EXPECT_GE(found[thread], acknowledged);
    EXPECT_LE(found[thread], acknowledged + 1);
  }
}

class Kill : public ::testing::TestWithParam<Death> {
 private:
  const test::ScopedEnvironment environment_{{}};
};

TEST_P(Kill, EveryAcknowledgedRowIsThereOnceAndInOrder) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const test::TempDir dir;
    auto options = test::options_in(dir.path());
    options.chunk_rows = round % 2 == 0 ? 100 : 4096;
    options.seal_interval = std::chrono::milliseconds(round % 2 == 0 ? 10 : 30000);
    options.sync_interval = std::chrono::milliseconds(20);
    const SharedMemory shared;
    test::Child child([&] { return log_until_death(options, shared); });
    const bool at_the_start = round % 5 == 0;
    if (!at_the_start) {
      while (shared->acknowledged[0].load() == 0) std::this_thread::sleep_for(1ms);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % (at_the_start ? 15'000 : 150'000)));
    if (GetParam() == Death::kKilled) {
      child.kill();
    } else {
      shared->order.store(GetParam());
    }
    const int status = child.wait();
    const int expected[] = {0, 128 + SIGKILL, 128 + SIGABRT, 128 + SIGSEGV, 7};
    ASSERT_EQ(status, expected[static_cast<int>(GetParam())]);
    expect_all_acknowledged(dir.path() / "project" / "job" / "rank-00000.db", shared);
  }
}

std::string name_of(const ::testing::TestParamInfo<Death>& death) {
  const char* names[] = {"", "Signal", "Abort", "Segfault", "Exit"};
  return names[static_cast<int>(death.param)];
}

INSTANTIATE_TEST_SUITE_P(By, Kill,
                         ::testing::Values(Death::kKilled, Death::kAbort, Death::kSegfault, Death::kExit),
                         name_of);

}  // namespace
}  // namespace ranklog
