// Real disks of our own: one that hangs altogether, and one under an overlay that is full.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "file_system.hpp"
#include "helpers.hpp"
#include "support/loop_disk.hpp"

namespace ranklog {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class MountedDiskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!disk_.missing().empty()) GTEST_SKIP() << disk_.missing();
  }
  const test::ScopedEnvironment environment_{{}};
  test::LoopDisk disk_{48};
};

TEST_F(MountedDiskTest, IsDetected) {
  const auto facts = writer::detect_file_system(disk_.path());
  EXPECT_EQ(facts.name, "ext4");
  EXPECT_EQ(facts.tail, writer::TailMode::kMapped);
}

// Logs 0, 1, 2 ... on a thread of its own, and remembers the longest call.
class Caller {
 public:
  explicit Caller(Writer& log) : thread_([this, &log](const std::stop_token& stop) { run(log, stop); }) {}
  [[nodiscard]] std::int64_t logged() const { return logged_; }
  [[nodiscard]] bool wait_for(std::int64_t count) const {
    const auto deadline = steady_clock::now() + 20s;
    while (logged_ < count && steady_clock::now() < deadline) std::this_thread::sleep_for(5ms);
    return logged_ >= count;
  }
  [[nodiscard]] std::chrono::milliseconds longest() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(longest_.load());
  }
  void stop() {
    thread_.request_stop();
    thread_.join();
  }

 private:
  void run(Writer& log, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto before = steady_clock::now();
      if (log.log({{"i", logged_.load()}}) == LogStatus::kOk) ++logged_;
      longest_ = std::max(longest_.load(), steady_clock::now() - before);
      std::this_thread::sleep_for(1ms);
    }
  }

  std::atomic<std::int64_t> logged_{0};
  std::atomic<steady_clock::duration> longest_{};
  std::jthread thread_;
};

class HangingDevice : public MountedDiskTest, public ::testing::WithParamInterface<const char*> {
 protected:
  Options options() {
    auto options = test::options_in(disk_.path());
    options.tail = GetParam();
    options.sync_interval = 20ms;
    return options;
  }
};

// As writer.hpp says: a store or a small write may hang with the device, and nothing is lost once it answers.
TEST_P(HangingDevice, MayHoldUpLogAndLosesNothing) {
  auto log = Writer::open(options());
  Caller caller(log);
  ASSERT_TRUE(caller.wait_for(50));
  ASSERT_TRUE(disk_.freeze(1s));
  std::this_thread::sleep_for(1200ms);
  EXPECT_TRUE(caller.wait_for(caller.logged() + 10)) << "did not go on";
  caller.stop();
  std::printf("{\"tail\": \"%s\", \"longest_log_ms\": %lld}\n", GetParam(),
              static_cast<long long>(caller.longest().count()));
  EXPECT_TRUE(log.finish(EndState::kFinished, 0, 20s).durable);
  const auto found = test::read_numbers(log.path(), "i");
  ASSERT_EQ(static_cast<std::int64_t>(found.size()), caller.logged());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], static_cast<std::int64_t>(i));
}

// Whether it is durable depends on what the caller had got through before the device froze.
TEST_P(HangingDevice, NeverHoldsUpFlush) {
  auto log = Writer::open(options());
  Caller caller(log);
  ASSERT_TRUE(caller.wait_for(50));
  ASSERT_TRUE(disk_.freeze(3s));
  std::this_thread::sleep_for(100ms);
  const auto start = steady_clock::now();
  static_cast<void>(log.flush(300ms));
  EXPECT_LT(steady_clock::now() - start, 2s);
  caller.stop();
  EXPECT_TRUE(log.finish(EndState::kFinished, 0, 20s).durable);
}

INSTANTIATE_TEST_SUITE_P(Tail, HangingDevice, ::testing::Values("mapped", "append"));

// An overlay passes fallocate and mappings on to its upper layer: where that is ext4, space that is reserved
// is there even when the disk is full. A store without a block would end this process by SIGBUS.
TEST_F(MountedDiskTest, OnAnOverlayReservedSpaceIsThereOnAFullDisk) {
  for (const char* name : {"lower", "upper", "work", "merged"}) {
    std::filesystem::create_directory(disk_.path() / name);
  }
  const auto merged = disk_.path() / "merged";
  const std::string layers = "lowerdir=" + (disk_.path() / "lower").string() +
                             ",upperdir=" + (disk_.path() / "upper").string() +
                             ",workdir=" + (disk_.path() / "work").string();
  if (::mount("overlay", merged.c_str(), "overlay", 0, layers.c_str()) != 0) {
    GTEST_SKIP() << "no overlay can be mounted";
  }
  const auto facts = writer::detect_file_system(merged);
  EXPECT_EQ(facts.name, "overlay on ext4");
  EXPECT_EQ(facts.tail, writer::TailMode::kMapped);
  test::Child child([&] {
    auto log = Writer::open(test::options_in(merged));
    const int ballast = ::open((merged / "ballast").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const std::string block(4096, 'x');
    while (::write(ballast, block.data(), block.size()) > 0) continue;
    for (int i = 0; i < 10'000; ++i) {
      if (log.log(i, {{"i", i}}) == LogStatus::kDropped) return 1;
    }
    std::filesystem::remove(merged / "ballast");
    ::close(ballast);
    return log.finish(EndState::kFinished, 0, 20s).durable ? 0 : 2;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(test::read_rows(merged / "project" / "job" / "rank-00000.db").size(), 10'000U);
  ::umount2(merged.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace ranklog
