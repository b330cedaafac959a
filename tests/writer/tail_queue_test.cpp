// The tail between callers and the background thread, at its edges.

#include "tail_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/naming.hpp"
#include "support/temp_dir.hpp"
#include "tail_rows.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytes = std::size_t{64} << 10;  // buffers of 8 KiB

class TailQueueTest : public ::testing::TestWithParam<TailMode> {
 protected:
  [[nodiscard]] TailQueue::Files files() const {
    return {rank_file_, encode_tail_header("token", 0), GetParam()};
  }
  // One row of one number and a text; its sequence number, or 0.
  static std::uint64_t put(TailQueue& queue, std::size_t text_bytes = 100) {
    test::TailRowOnItsWay row(queue, text_bytes);
    if (row.sequence() > 0) last_error_ = row.publish();
    return row.sequence();
  }
  static std::vector<std::uint64_t> drain(TailQueue& queue, std::uint64_t most = 1'000'000) {
    return test::drain(queue, most);
  }
  [[nodiscard]] std::size_t files_left() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      count += entry.path().filename().string().find(".tail.") != std::string::npos;
    }
    return count;
  }
  // Makes the folder one in which nothing can be created, and back, whoever this is.
  void block_folder() const { fs::rename(dir_.path(), dir_.path().string() + ".gone"); }
  void unblock_folder() const { fs::rename(dir_.path().string() + ".gone", dir_.path()); }

  static inline std::atomic<int> last_error_ = 0;
  const test::TempDir dir_;
  const fs::path rank_file_ = dir_ / "rank-00000.db";
};

std::vector<std::uint64_t> range(std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = first; number <= last; ++number) numbers.push_back(number);
  return numbers;
}

TEST_P(TailQueueTest, RecordsComeInTheOrderOfTheirNumbersAcrossBuffers) {
  TailQueue queue(files(), {kBytes, true}, [] {});
  std::uint64_t last = 0;
  for (int i = 0; i < 200; ++i) {
    const auto sequence = put(queue);
    EXPECT_EQ(sequence, last + 1);
    last = sequence;
  }
  EXPECT_GT(files_left(), 2U);
  EXPECT_EQ(drain(queue, 50), range(1, 50));
  EXPECT_FALSE(queue.is_drained());
  EXPECT_EQ(drain(queue), range(51, 200));
  EXPECT_TRUE(queue.is_drained());
  queue.release(200, 0);
  EXPECT_EQ(files_left(), 1U) << "what is sealed goes, what is in use stays";
  EXPECT_EQ(put(queue), 201U);
  EXPECT_EQ(drain(queue), range(201, 201));
}

TEST_P(TailQueueTest, VisitorThatThrowsSeesTheSameRecordsAgain) {
  TailQueue queue(files(), {kBytes, true}, [] {});
  for (int i = 0; i < 100; ++i) put(queue);
  int seen = 0;
  EXPECT_THROW(queue.drain(100,
                           [&](std::string_view) {
                             if (++seen == 90) throw std::bad_alloc();
                           }),
               std::bad_alloc);
  EXPECT_EQ(drain(queue), range(1, 100));
}

TEST_P(TailQueueTest, FilesReadAsTheRecordsWithTheKeysBeforeThem) {
  TailQueue queue(files(), {kBytes, true}, [] {});
  queue.define_key(0, KeyPath::flat("loss"));
  queue.define_key(1, KeyPath::flat("text"));
  for (int i = 0; i < 150; ++i) put(queue);
  std::uint64_t expected = 0;
  for (unsigned index = 1; index <= files_left(); ++index) {
    const std::string bytes = test::read_file(tail_segment_path(rank_file_, index));
    const TailStart start = find_tail_start(bytes, "token", 0);
    ASSERT_EQ(start.kind, TailStart::Kind::kOwn);
    TailReader reader(std::string_view(bytes).substr(start.bytes));
    for (const char* name : {"loss", "text"}) {
      const auto key = reader.next();
      ASSERT_TRUE(key && std::holds_alternative<TailKey>(*key));
      EXPECT_EQ(std::get<TailKey>(*key).path, KeyPath::flat(name));
    }
    while (const auto record = reader.next()) EXPECT_EQ(std::get<TailRow>(*record).sequence, ++expected);
  }
  EXPECT_EQ(expected, 150U);
  // Keys that are in the database need no mention.
  drain(queue);
  queue.release(150, 2);
  for (int i = 0; i < 100; ++i) put(queue);
  const std::string newest = test::read_file(tail_segment_path(rank_file_, 4 + 0U)).substr(0, 200);
  EXPECT_EQ(newest.find("loss"), std::string::npos);
}

TEST_P(TailQueueTest, WhatIsStillBeingWrittenIsNotDurableNorIsWhatFollows) {
  TailQueue queue(files(), {kBytes, true}, [] {});
  put(queue);
  EXPECT_EQ(queue.sync(), 1U);
  test::TailRowOnItsWay late(queue);
  EXPECT_EQ(queue.sync(), 1U);
  while (files_left() < 3) put(queue);
  EXPECT_EQ(queue.sync(), 1U) << "buffers behind the gap do not count either";
  EXPECT_EQ(late.publish(), 0);
  EXPECT_EQ(queue.sync(), queue.last_sequence());
  EXPECT_EQ(queue.sync(), queue.last_sequence());
}

TEST_P(TailQueueTest, RecordLargerThanABufferHasRoom) {
  TailQueue queue(files(), {kBytes, true}, [] {});
  EXPECT_EQ(put(queue), 1U);
  EXPECT_EQ(put(queue, 5 * kBytes), 2U);
  EXPECT_EQ(put(queue, 10), 3U);
  EXPECT_EQ(drain(queue), range(1, 3));
}

TEST_P(TailQueueTest, RecordAsLargeAsTheLimitStallsNothing) {
  for (const std::size_t limit : {kBytes, std::size_t{1}}) {
    TailQueue queue(files(), {limit, false}, [] {});
    EXPECT_EQ(put(queue, 2 * kBytes), 1U);
    EXPECT_TRUE(queue.is_half_full());
    for (std::uint64_t last = 1; last < 2000; ++last) {
      EXPECT_EQ(drain(queue), range(last, last));
      queue.release(last, 0);
      ASSERT_FALSE(queue.is_half_full()) << last;
      ASSERT_EQ(put(queue), last + 1);
    }
    queue.remove_files(true);
  }
}

TEST_P(TailQueueTest, FullQueueRefusesUntilSomethingIsReleased) {
  TailQueue queue(files(), {kBytes, false}, [] {});
  std::uint64_t last = 0;
  while (const auto sequence = put(queue)) last = sequence;
  EXPECT_GT(last, 100U);
  EXPECT_TRUE(queue.is_half_full());
  EXPECT_EQ(queue.reserve_now(100).refusal, TailQueue::Refusal::kNone) << "what cannot wait";
  drain(queue, last / 2);
  queue.release(last / 2, 0);
  EXPECT_EQ(put(queue), last + 2);
}

TEST_P(TailQueueTest, WithoutAFileRecordsAreInMemoryAloneUntilThereIsOne) {
  TailQueue queue(files(), {kBytes, true}, [] {});
  put(queue);
  EXPECT_EQ(last_error_, 0);
  block_folder();
  while (last_error_ == 0) put(queue);
  const auto first_lost = queue.last_sequence();
  put(queue);
  EXPECT_NE(queue.error(), 0);
  EXPECT_TRUE(queue.is_broken());
  EXPECT_EQ(queue.in_memory_alone(), 2U);
  EXPECT_FALSE(queue.prepare());
  unblock_folder();
  EXPECT_EQ(queue.sync(), first_lost - 1) << "nothing behind the gap counts as durable";
  EXPECT_TRUE(queue.prepare());
  put(queue);
  EXPECT_EQ(last_error_, 0);
  EXPECT_EQ(queue.in_memory_alone(), 2U);
  EXPECT_TRUE(queue.is_broken()) << "the two still wait";
  const auto last = queue.last_sequence();
  EXPECT_EQ(drain(queue), range(1, last));
  queue.release(last, 0);
  EXPECT_FALSE(queue.is_broken());
  EXPECT_EQ(queue.error(), 0);
  EXPECT_EQ(queue.in_memory_alone(), 0U);
}

TEST_P(TailQueueTest, WhatFindsNoSpareAndCannotWaitIsToldToBeInMemory) {
  TailQueue queue(files(), {kBytes, true}, [] {});
  int error = 0;
  for (int i = 0; i < 1000 && queue.in_memory_alone() == 0; ++i) {
    test::TailRowOnItsWay row(queue.reserve_now(test::TailRowOnItsWay::payload_bytes(100)), 100);
    error = row.publish();
  }
  ASSERT_EQ(queue.in_memory_alone(), 1U);
  EXPECT_NE(error, 0);
  EXPECT_NE(queue.error(), 0);
  EXPECT_TRUE(queue.prepare());
  put(queue);
  EXPECT_EQ(last_error_, 0);
}

TEST_P(TailQueueTest, KeysLargerThanABufferFindAFileToo) {
  TailQueue queue(files(), {kBytes, true}, [] {});
  for (KeyId key = 0; key < 10; ++key) {
    queue.define_key(key, KeyPath::flat(std::string(3000, static_cast<char>('a' + key))));
  }
  block_folder();
  while (last_error_ == 0) put(queue);
  unblock_folder();
  const auto alone = queue.in_memory_alone();
  EXPECT_TRUE(queue.prepare());
  put(queue);
  EXPECT_EQ(last_error_, 0);
  EXPECT_EQ(queue.in_memory_alone(), alone);
  EXPECT_TRUE(queue.prepare());
  const auto files = files_left();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(queue.prepare());
  EXPECT_EQ(files_left(), files);
}

TEST_P(TailQueueTest, ClosedQueueTakesNothing) {
  TailQueue queue(files(), {kBytes, true}, [] {});
  put(queue);
  queue.close();
  EXPECT_EQ(put(queue), 0U);
  EXPECT_EQ(queue.reserve_now(10).refusal, TailQueue::Refusal::kClosed);
  EXPECT_EQ(drain(queue), range(1, 1));
}

TEST_P(TailQueueTest, FolderThatIsNotThereIsAnErrorThatNamesTheFile) {
  try {
    const TailQueue queue({dir_ / "nowhere" / "rank-00000.db", encode_tail_header("token", 0), GetParam()},
                          {}, [] {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("rank-00000.tail.1"), std::string::npos) << error.what();
  }
}

// Callers and the background thread at once; buffers are used again and again.
TEST_P(TailQueueTest, EachRecordIsDrainedOnceWhoeverLogsAtTheSameTime) {
  constexpr int kThreads = 4;
  constexpr int kRows = 20'000;
  TailQueue queue(files(), {kBytes, true}, [] {});
  std::vector<std::jthread> callers;
  for (int thread = 0; thread < kThreads; ++thread) {
    callers.emplace_back([&] {
      std::uint64_t last = 0;
      for (int i = 0; i < kRows; ++i) {
        const auto sequence = put(queue, static_cast<std::size_t>(i % 50));
        EXPECT_GT(sequence, last);
        last = sequence;
      }
    });
  }
  std::uint64_t seen = 0;
  while (seen < std::uint64_t{kThreads} * kRows) {
    queue.prepare();
    queue.drain(1000, [&](std::string_view payload) {
      const auto record = decode_tail_record(payload);
      ASSERT_TRUE(record);
      const auto& row = std::get<TailRow>(*record);
      ASSERT_EQ(row.sequence, ++seen);
      ASSERT_EQ(row.fields.size(), 2U);
      ASSERT_EQ(row.fields[0].value.as_double(), 1.5);
    });
    queue.release(seen, 0);
  }
  EXPECT_TRUE(queue.is_drained());
}

INSTANTIATE_TEST_SUITE_P(Both, TailQueueTest, ::testing::Values(TailMode::kMapped, TailMode::kAppend),
                         [](const auto& mode) {
                           return mode.param == TailMode::kMapped ? "Mapped" : "Append";
                         });

}  // namespace
}  // namespace ranklog::writer
