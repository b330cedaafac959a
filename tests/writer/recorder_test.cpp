// The tail at its edges: the last round, and a broken segment that is replaced.

#include "recorder.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "support/temp_dir.hpp"

namespace ranklog::writer {
namespace {

class RecorderTest : public ::testing::Test {
 protected:
  std::shared_ptr<TailSegment> make_segment(const char* name) {
    int error = 0;
    return TailSegment::create(dir_ / name, encode_tail_header("token", 0), TailMode::kAppend, error);
  }
  static LogStatus log_one(Recorder& recorder) {
    const Field field{"i", 1};
    return recorder.log(std::nullopt, std::span<const Field>(&field, 1));
  }

  const test::TempDir dir_;
  const std::shared_ptr<TailSegment> first_ = make_segment("1");
};

TEST_F(RecorderTest, KeepsRowsInMemoryWithoutASegment) {
  Recorder recorder({}, 0, first_);
  EXPECT_EQ(log_one(recorder), LogStatus::kOk);
  std::shared_ptr<TailSegment> none;
  EXPECT_EQ(recorder.take(none, 0).segment, first_);
  EXPECT_EQ(log_one(recorder), LogStatus::kInMemory);
  recorder.close();
  EXPECT_EQ(log_one(recorder), LogStatus::kClosed);
}

TEST_F(RecorderTest, HandsOutTheBrokenSegmentThatAFreshOneReplaces) {
  Recorder recorder({}, 0, first_);
  EXPECT_EQ(log_one(recorder), LogStatus::kOk);
  recorder.tail_failed(ENOSPC);
  EXPECT_EQ(log_one(recorder), LogStatus::kInMemory);
  auto segment = make_segment("2");
  EXPECT_EQ(recorder.resume_tail(segment), 0);
  EXPECT_EQ(segment, first_);
  EXPECT_EQ(log_one(recorder), LogStatus::kOk);
}

}  // namespace
}  // namespace ranklog::writer
