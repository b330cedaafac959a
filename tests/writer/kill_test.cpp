// What survives when the process is killed at a moment that nobody chose.

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "helpers.hpp"

namespace ranklog {
namespace {

constexpr int kThreads = 2;

struct Acknowledged {
  std::int32_t thread = 0;
  std::int32_t row = 0;
};

int log_until_killed(const Options& options, const test::Pipe& acknowledged) {
  auto log = Writer::open(options);
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const std::string key = "of " + std::to_string(thread);
      for (int row = 0;; ++row) {
        if (log.log(row, {{"thread", thread}, {key, row}, {"value", row * 0.5}}) != LogStatus::kOk)
          ::_exit(3);
        const Acknowledged done{thread, row};
        acknowledged.write(&done, sizeof done);
      }
    });
  }
  threads.clear();
  return 4;
}

// Rows 0, 1, 2 ... of each thread, each once, in order; the count of each thread.
std::vector<std::int64_t> check_rows(const std::filesystem::path& path) {
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

TEST(Kill, EveryAcknowledgedRowIsThereOnceAndInOrder) {
  const test::ScopedEnvironment environment({});
  std::mt19937 random(20240607);
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    const test::TempDir dir;
    auto options = test::options_in(dir.path());
    options.chunk_rows = round % 2 == 0 ? 100 : 4096;
    options.seal_interval = std::chrono::milliseconds(round % 2 == 0 ? 10 : 30000);
    options.sync_interval = std::chrono::milliseconds(20);
    test::Pipe pipe;
    test::Child child([&] {
      pipe.close_reader();
      return log_until_killed(options, pipe);
    });
    pipe.close_writer();

    std::vector<std::int64_t> acknowledged(kThreads, 0);
    Acknowledged done;
    ASSERT_TRUE(pipe.read(&done, sizeof done));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(random() % 150);
    bool killed = false;
    do {
      acknowledged.at(static_cast<std::size_t>(done.thread)) = done.row + 1;
      if (!killed && std::chrono::steady_clock::now() >= deadline) {
        child.kill();
        killed = true;
      }
    } while (pipe.read(&done, sizeof done));
    ASSERT_EQ(child.wait(), 128 + SIGKILL);

    const auto path = dir.path() / "project" / "job" / "rank-00000.db";
    EXPECT_EQ(test::integrity_check(path), "ok");
    const auto found = check_rows(path);
    for (int thread = 0; thread < kThreads; ++thread) {
      // At most the row that was being logged when the kill came is there without having been acknowledged.
      const auto index = static_cast<std::size_t>(thread);
      EXPECT_GE(found[index], acknowledged[index]);
      EXPECT_LE(found[index], acknowledged[index] + 1);
    }
  }
}

}  // namespace
}  // namespace ranklog
