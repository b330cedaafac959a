// The tail on a disk that takes its time, and in a process that is killed inside a write.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "helpers.hpp"
#include "ranklog/schema/naming.hpp"
#include "support/faulty_disk.hpp"
#include "tail_rows.hpp"

namespace ranklog::writer {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr std::size_t kBytes = std::size_t{64} << 10;  // buffers of 8 KiB

class TailFaultTest : public ::testing::Test {
 protected:
  [[nodiscard]] TailQueue::Files files(TailMode mode) const {
    return {rank_file_, encode_tail_header("token", 0), mode};
  }
  static std::uint64_t put(TailQueue& queue, std::size_t text_bytes = 100) {
    test::TailRowOnItsWay row(queue, text_bytes);
    if (row.sequence() > 0) row.publish();
    return row.sequence();
  }
  [[nodiscard]] std::size_t files_left() const {
    const auto names = test::list_folder(folder_);
    return static_cast<std::size_t>(std::ranges::count_if(
        names, [](const std::string& name) { return name.find(".tail.") != std::string::npos; }));
  }
  // What a reader finds in a segment.
  [[nodiscard]] std::string records_of(unsigned index) const {
    const std::string bytes = test::read_file(tail_segment_path(rank_file_, index));
    const TailStart start = find_tail_start(bytes, "token", 0);
    return start.kind == TailStart::Kind::kOwn ? bytes.substr(start.bytes) : "";
  }
  template <class Call>
  static void expect_quick(Call call) {
    const auto start = steady_clock::now();
    call();
    EXPECT_LT(steady_clock::now() - start, 400ms);
  }

  const test::TempDir dir_;
  const std::filesystem::path folder_ = std::filesystem::canonical(dir_.path());
  const std::filesystem::path rank_file_ = folder_ / "rank-00000.db";
  test::FaultyDisk disk_{folder_};
};

TEST_F(TailFaultTest, WhatIsPublishedDuringASyncIsSyncedByTheNext) {
  for (const auto mode : {TailMode::kMapped, TailMode::kAppend}) {
    TailQueue queue(files(mode), {kBytes, true}, [] {});
    put(queue);
    test::TailRowOnItsWay late(queue);
    EXPECT_EQ(queue.sync(), 1U);
    const int before = disk_.syncs;
    late.publish();
    EXPECT_EQ(queue.sync(), 2U);
    EXPECT_EQ(disk_.syncs, before + 1);
    EXPECT_EQ(queue.sync(), 2U);
    EXPECT_EQ(disk_.syncs, before + 1) << "nothing is new";
    queue.remove_files(true);
  }
}

TEST_F(TailFaultTest, RemovalThatHangsHoldsUpNobody) {
  TailQueue queue(files(TailMode::kMapped), {kBytes, true}, [] {});
  while (files_left() < 3) put(queue);
  queue.prepare();
  test::drain(queue);
  const auto last = queue.last_sequence();
  disk_.remove_ms = 500;
  {
    std::jthread background([&] { queue.release(last, 0); });
    std::this_thread::sleep_for(100ms);
    expect_quick([&] { put(queue); });
    expect_quick([&] { EXPECT_EQ(queue.last_sequence(), last + 1); });
    expect_quick([&] { EXPECT_EQ(queue.error(), 0); });
  }
  queue.close();
  {
    std::jthread background([&] { queue.remove_files(true); });
    std::this_thread::sleep_for(100ms);
    expect_quick([&] { EXPECT_EQ(put(queue), 0U); });
    expect_quick([&] { EXPECT_EQ(queue.last_sequence(), last + 1); });
  }
  EXPECT_EQ(files_left(), 0U);
}

// Neither the choice to drop nor a database that is busy has anything to do with it.
TEST_F(TailFaultTest, FileThatOneCallerMakesIsWaitedForByTheOthers) {
  TailQueue queue(files(TailMode::kMapped), {kBytes, false}, [] {});
  queue.set_hopeless(true);
  disk_.create_ms = 300;
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_GT(put(queue), 0U);
    });
  }
  callers.clear();
  EXPECT_EQ(test::drain(queue).size(), 150U);
}

TEST_F(TailFaultTest, WaitForAFileIsNotOneForRoom) {
  TailQueue queue(files(TailMode::kMapped), {kBytes, true, 500ms}, [] {});
  disk_.create_ms = 100;
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 2; ++caller) {
      callers.emplace_back([&] {
        for (int i = 0; i < 40; ++i) put(queue, 500);
      });
    }
  }
  disk_.create_ms = 0;
  std::this_thread::sleep_for(600ms);
  std::jthread background([&] {
    for (;;) {
      std::this_thread::sleep_for(100ms);
      test::drain(queue);
      const auto last = queue.last_sequence();
      queue.release(last, 0);
      if (last >= 1000) return;
    }
  });
  for (int i = 0; i < 1000; ++i) EXPECT_GT(put(queue), 0U) << "dropped though the disk makes progress";
}

TEST_F(TailFaultTest, KeysStandInTheFileBeforeARowOfAnotherThreadDoes) {
  TailQueue queue(files(TailMode::kAppend), {kBytes, true}, [] {});
  while (put(queue, 500) < 10) continue;
  queue.prepare();
  queue.define_key(0, KeyPath::flat(std::string(5000, 'k')));  // the first buffer has no room for it
  disk_.next_write_ms = 300;
  std::jthread slow([&] { put(queue); });
  std::this_thread::sleep_for(100ms);
  put(queue);
  const std::string records = records_of(2);
  TailReader reader(records);
  const auto record = reader.next();
  ASSERT_TRUE(record) << "a kill would lose the name of what the row has";
  EXPECT_TRUE(std::holds_alternative<TailKey>(*record));
}

TEST_F(TailFaultTest, FileThatIsMadeWhenTheQueueHasEndedDoesNotStay) {
  TailQueue queue(files(TailMode::kMapped), {kBytes, true}, [] {});
  disk_.create_ms = 300;
  {
    std::jthread caller([&] {
      while (put(queue) > 0) continue;
    });
    std::this_thread::sleep_for(100ms);
    queue.close();
    queue.remove_files(true);
  }
  EXPECT_EQ(files_left(), 0U);
}

TEST_F(TailFaultTest, RecordThatAKillCutsOffIsUnfinishedAndNoDamage) {
  test::Child child([&] {
    TailQueue queue(files(TailMode::kAppend), {kBytes, true}, [] {});
    put(queue);
    test::TailRowOnItsWay cut(queue, 5000);
    put(queue);
    disk_.kills_in_write = true;
    cut.publish();
    return 1;
  });
  ASSERT_EQ(child.wait(), 128 + SIGKILL);
  const std::string records = records_of(1);
  TailReader reader(records);
  ASSERT_TRUE(reader.next());
  ASSERT_FALSE(reader.next());
  EXPECT_EQ(reader.skip(), TailReader::Gap::kUnfinished);
  const auto behind = reader.next();
  ASSERT_TRUE(behind);
  EXPECT_EQ(std::get<TailRow>(*behind).sequence, 3U);
}

}  // namespace
}  // namespace ranklog::writer
