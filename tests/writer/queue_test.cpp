// A database that takes its time: somebody else holds SQLite's write lock.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "helpers.hpp"

namespace ranklog {
namespace {

using namespace std::chrono_literals;

class WriteLock {
 public:
  explicit WriteLock(const std::filesystem::path& file) {
    sqlite3* raw = nullptr;
    sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
    database_.reset(raw);
    sqlite3_busy_timeout(raw, 5000);
    EXPECT_EQ(sqlite3_exec(raw, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(raw);
  }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  std::unique_ptr<sqlite3, Close> database_;
};

class QueueTest : public ::testing::Test {
 protected:
  Writer open(WhenFull when_full) {
    auto options = test::options_in(dir_.path());
    options.queue_bytes = std::size_t{32} << 10;
    options.when_full = when_full;
    return Writer::open(options);
  }

  const test::ScopedEnvironment environment_{{}};
  const test::TempDir dir_;
  const std::string text_ = std::string(1000, 'x');
};

TEST_F(QueueTest, FullQueueBlocksTheCallerUntilThereIsRoom) {
  auto log = open(WhenFull::kBlock);
  std::optional<WriteLock> lock(log.path());
  std::jthread release([&] {
    std::this_thread::sleep_for(500ms);
    lock.reset();
  });
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(log.log(i, {{"i", i}, {"text", text_}}), LogStatus::kOk);
  EXPECT_GT(std::chrono::steady_clock::now() - start, 300ms);
  EXPECT_EQ(log.finish().dropped_rows, 0U);
  EXPECT_EQ(test::read_numbers(log.path(), "i").size(), 200U);
}

TEST_F(QueueTest, FullQueueDropsAndCountsWhereThatWasChosen) {
  auto log = open(WhenFull::kDrop);
  std::vector<std::int64_t> kept;
  {
    const WriteLock lock(log.path());
    for (int i = 0; i < 200; ++i) {
      if (log.log(i, {{"i", i}, {"text", text_}}) == LogStatus::kOk) kept.push_back(i);
    }
  }
  ASSERT_LT(kept.size(), 200U);
  const auto outcome = log.finish();
  EXPECT_EQ(outcome.dropped_rows, 200 - kept.size());
  EXPECT_FALSE(outcome.durable);
  EXPECT_EQ(test::read_numbers(log.path(), "i"), kept);
  const auto file = RankFile::open(log.path());
  EXPECT_EQ(file.info().dropped_rows, outcome.dropped_rows);
  std::uint64_t told = 0;  // in one event or several: the background thread may look in between
  for (const Event& event : file.events()) {
    EXPECT_EQ(event.kind, "drop");
    told += nlohmann::json::parse(event.json).at("rows").get<std::uint64_t>();
  }
  EXPECT_EQ(told, outcome.dropped_rows);
}

TEST_F(QueueTest, FlushIsBoundedInTime) {
  auto log = open(WhenFull::kBlock);
  for (int i = 0; i < 20; ++i)
    log.log(i, {{"i", i}, {"text", text_}});  // more than half of the queue: sealing begins
  const WriteLock lock(log.path());
  log.log(20, {{"i", 20}, {"text", text_}});
  const auto start = std::chrono::steady_clock::now();
  static_cast<void>(log.flush(200ms));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
}

TEST_F(QueueTest, FinishIsBoundedInTimeAndNothingIsLost) {
  std::filesystem::path path;
  {
    std::optional<WriteLock> lock;
    auto log = open(WhenFull::kBlock);
    path = log.path();
    lock.emplace(path);
    for (int i = 0; i < 10; ++i) log.log(i, {{"i", i}});
    const auto start = std::chrono::steady_clock::now();
    const auto outcome = log.finish(EndState::kFinished, 0, 300ms);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
    EXPECT_FALSE(outcome.durable);
    EXPECT_NE(outcome.message, "");
  }
  EXPECT_EQ(test::read_numbers(path, "i").size(), 10U);
  // The thread outlives the writer, and ends the file as soon as it can.
  for (int i = 0; i < 200 && !RankFile::open(path).info().end_state; ++i) std::this_thread::sleep_for(50ms);
  EXPECT_EQ(RankFile::open(path).info().end_state, EndState::kFinished);
}

}  // namespace
}  // namespace ranklog
