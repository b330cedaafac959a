// What is left when the power goes, at hundreds of moments that nobody chose.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <tuple>

#include "helpers.hpp"
#include "support/power_cut.hpp"

namespace ranklog {
namespace {

using namespace std::chrono_literals;

std::string noise(std::mt19937& random, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += std::to_string(random());
  return text;
}

// Opens the file for writing, as the sqlite3 shell does, so that it is recovered in place. "ok" if it is
// sound.
std::string sqlite_recovers(const std::filesystem::path& path) {
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open(path.c_str(), &raw);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(raw, sqlite3_close);
  std::string answer;
  const auto collect = [](void* out, int, char** columns, char**) {
    *static_cast<std::string*>(out) += columns[0];
    return 0;
  };
  if (opened != SQLITE_OK ||
      sqlite3_exec(raw, "PRAGMA integrity_check", collect, &answer, nullptr) != SQLITE_OK) {
    return sqlite3_errmsg(raw);
  }
  return answer;
}

// Logs 0, 1, 2 ... without a stop, and flushes now and then.
class BusyLog {
 public:
  explicit BusyLog(const Options& options) : log_(Writer::open(options)) {
    threads_.emplace_back([this](const std::stop_token& stop) { log_rows(stop); });
    threads_.emplace_back([this](const std::stop_token& stop) { flush(stop); });
  }
  void stop() { threads_.clear(); }
  [[nodiscard]] std::int64_t flushed() const { return flushed_; }
  [[nodiscard]] std::int64_t logged() const { return logged_; }
  Writer& log() { return log_; }

 private:
  void log_rows(const std::stop_token& stop) {
    std::mt19937 random(7);
    while (!stop.stop_requested()) {
      const std::int64_t i = logged_;
      const auto status = log_.log(i, {{"i", i}, {"text", noise(random, 200)}});
      EXPECT_EQ(status, LogStatus::kOk);
      ++logged_;
      if (i % 4 == 0) std::this_thread::sleep_for(4ms);
    }
  }
  void flush(const std::stop_token& stop) {
    std::mt19937 random(8);
    while (!stop.stop_requested()) {
      const std::int64_t before = logged_;
      if (log_.flush(20s).durable) flushed_ = before;
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
    }
  }

  Writer log_;
  std::atomic<std::int64_t> logged_{0}, flushed_{0};
  std::vector<std::jthread> threads_;
};

using Mode = std::tuple<const char*, const char*>;  // journal, tail

class PowerLoss : public ::testing::TestWithParam<Mode> {
 protected:
  PowerLoss() {
    folder_ = std::filesystem::canonical(dir_.path()) / "logs";
    std::filesystem::create_directory(folder_);
    options_ = test::options_in(folder_);
    options_.journal = std::get<0>(GetParam());
    options_.tail = std::get<1>(GetParam());
    options_.chunk_rows = 150;
    options_.seal_interval = 20ms;
    options_.sync_interval = 10ms;
  }

  // The rows in a picture: 0, 1, 2 ..., each once, with the first `durable` of them all there.
  void check(const std::filesystem::path& picture, std::int64_t durable) {
    const auto path = picture / "project" / "job" / "rank-00000.db";
    if (durable == 0 && !std::filesystem::exists(path)) return;  // before open() has returned
    ASSERT_TRUE(std::filesystem::exists(path));
    const auto rows_as_left = RankFile::open(path).info().rows;
    EXPECT_EQ(sqlite_recovers(path), "ok");
    const auto file = RankFile::open(path);
    EXPECT_EQ(file.info().rows, rows_as_left) << "ranklog and SQLite recover differently";
    for (const auto& damage : file.damage()) {
      // What was not synced may be torn in the tail, a key's record too; what is in the database may not.
      EXPECT_TRUE(damage.place.starts_with("tail") || damage.place.starts_with("key"))
          << damage.place << ": " << damage.reason;
    }
    std::vector<std::int64_t> found;
    for (std::size_t i = 0; i < file.row_groups().size(); ++i) {
      const RowGroup group = file.load(i);
      for (std::size_t row = 0; row < group.rows(); ++row) found.push_back(group.step[row]);
    }
    std::sort(found.begin(), found.end());
    EXPECT_TRUE(std::adjacent_find(found.begin(), found.end()) == found.end()) << "a row is there twice";
    ASSERT_GE(static_cast<std::int64_t>(found.size()), durable);
    for (std::int64_t i = 0; i < durable; ++i) {
      ASSERT_EQ(found[static_cast<std::size_t>(i)], i) << "a row that flush() had promised";
    }
  }

  const test::ScopedEnvironment environment_{{}};
  const test::TempDir dir_;
  std::filesystem::path folder_;
  Options options_;
};

TEST_P(PowerLoss, NeverCorruptsTheFileAndTakesNothingThatWasFlushed) {
  constexpr int kCuts = 40;
  test::PowerCut disk(folder_);
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(options_.journal + options_.tail)));
  BusyLog busy(options_);
  for (int cut = 0; cut < kCuts && !HasFatalFailure(); ++cut) {
    SCOPED_TRACE(cut);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 25));
    const auto durable = busy.flushed();
    const auto picture = dir_ / ("cut-" + std::to_string(cut));
    disk.take_picture(picture, random);
    check(picture, durable);
    std::filesystem::remove_all(picture);
  }
  busy.stop();
  EXPECT_GT(busy.flushed(), 0);
  ASSERT_TRUE(busy.log().finish(EndState::kFinished, 0, 30s).durable);
  for (int cut = 0; cut < 5; ++cut) {
    const auto picture = dir_ / ("end-" + std::to_string(cut));
    disk.take_picture(picture, random);
    check(picture, busy.logged());
    EXPECT_EQ(RankFile::open(picture / "project" / "job" / "rank-00000.db").info().end_state,
              EndState::kFinished);
  }
}

TEST_P(PowerLoss, TakesNothingThatIsOlderThanTheSyncInterval) {
  test::PowerCut disk(folder_);
  std::mt19937 random(3);
  options_.seal_interval = 1h;
  auto log = Writer::open(options_);
  std::int64_t logged = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 20; ++i, ++logged) EXPECT_EQ(log.log(logged, {{"i", logged}}), LogStatus::kOk);
    std::this_thread::sleep_for(60 * *options_.sync_interval);
    const auto picture = dir_ / ("cut-" + std::to_string(round));
    disk.take_picture(picture, random);
    check(picture, logged);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, PowerLoss,
                         ::testing::Combine(::testing::Values("wal", "persist", "truncate", "delete"),
                                            ::testing::Values("mapped", "append")),
                         [](const auto& mode) {
                           return std::string(std::get<0>(mode.param)) + "_" + std::get<1>(mode.param);
                         });

}  // namespace
}  // namespace ranklog
