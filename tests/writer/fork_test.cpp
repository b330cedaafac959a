#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "helpers.hpp"

namespace ranklog {
namespace {

class ForkTest : public ::testing::Test {
 protected:
  const test::ScopedEnvironment environment_{{}};
  const test::TempDir dir_;
};

TEST_F(ForkTest, ChildDoesNothingAndTheParentGoesOn) {
  auto log = Writer::open(test::options_in(dir_.path()));
  log.log(0, {{"i", 0}});
  test::Child child([&] {
    const bool closed = log.log(1, {{"i", 100}}) == LogStatus::kClosed &&
                        log.log({{"i", 100}}) == LogStatus::kClosed &&
                        log.log_json(1, R"({"i":100})") == LogStatus::kClosed &&
                        log.config({{"i", 100}}) == LogStatus::kClosed;
    log.artifact("a", "b").add_file("no such file").commit();
    static_cast<void>(log.flush());
    log.finish();
    {
      const Writer moved = std::move(log);
    }  // the destructor must not wait for a thread that is not here
    return closed ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(log.log(1, {{"i", 1}}), LogStatus::kOk);
  EXPECT_TRUE(log.finish().durable);
  EXPECT_EQ(test::read_numbers(log.path(), "i"), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(RankFile::open(log.path()).info().end_state, EndState::kFinished);
}

// As data loaders do it. A child's own calls answer at once, whatever the parent's threads held.
TEST_F(ForkTest, EightChildrenAHundredTimesWhileOtherThreadsLogHarmNeither) {
  constexpr int kRounds = 100;
  constexpr std::size_t kChildren = 8;
  auto options = test::options_in(dir_.path());
  options.chunk_rows = 64;
  auto log = Writer::open(options);
  std::int64_t logged = 0;
  {
    std::jthread logger([&](const std::stop_token& stop) {
      for (; !stop.stop_requested(); ++logged) {
        log.log(logged, {{"i", logged}});
        if (logged % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::unique_ptr<test::Child>> children;
      while (children.size() < kChildren) {
        children.push_back(std::make_unique<test::Child>(
            [&] { return log.log(0, {{"i", -1}}) == LogStatus::kClosed ? 0 : 1; }));
      }
      for (const auto& child : children) ASSERT_EQ(child->wait(), 0) << round;
    }
  }
  EXPECT_TRUE(log.finish().durable);
  const auto numbers = test::read_numbers(log.path(), "i");
  ASSERT_EQ(numbers.size(), static_cast<std::size_t>(logged));
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], static_cast<std::int64_t>(i));
}

// ThreadSanitizer knows no threads in a child of a process with threads.
#ifndef __SANITIZE_THREAD__
TEST_F(ForkTest, ChildMayOpenALogOfItsOwn) {
  auto log = Writer::open(test::options_in(dir_.path()));
  log.log(0, {{"i", 0}});
  test::Child child([&] {
    auto options = test::options_in(dir_.path());
    options.experiment = "child";
    auto own = Writer::open(options);
    const auto status = own.log(0, {{"i", 5}});
    return status == LogStatus::kOk && own.finish().durable ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(test::read_numbers(dir_.path() / "project" / "child" / "rank-00000.db", "i"),
            (std::vector<std::int64_t>{5}));
}
#endif

}  // namespace
}  // namespace ranklog
