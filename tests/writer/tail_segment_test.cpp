#include "tail_segment.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "ranklog/schema/error.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReserved = std::size_t{1} << 20;

// On tmpfs, where space can be reserved and mapped on every machine.
class TailSegmentTest : public ::testing::TestWithParam<TailMode> {
 protected:
  void SetUp() override {
    if (!fs::exists("/dev/shm")) GTEST_SKIP() << "there is no /dev/shm";
    folder_ = "/dev/shm/ranklog-test-" + std::to_string(::getpid());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::shared_ptr<TailSegment> create(TailMode mode) {
    int error = 0;
    auto segment = TailSegment::create(folder_ / "tail", "header|", mode, error);
    EXPECT_EQ(error, 0);
    return segment;
  }
  [[nodiscard]] std::string content() const {
    std::string bytes = test::read_file(folder_ / "tail");
    bytes.resize(bytes.find_last_not_of('\0') + 1);
    return bytes;
  }

  fs::path folder_;
};

TEST_P(TailSegmentTest, ReadsAsWhatWasAppended) {
  const auto segment = create(GetParam());
  EXPECT_EQ(segment->append("one|"), 0);
  EXPECT_EQ(segment->append("two|"), 0);
  EXPECT_EQ(content(), "header|one|two|");
  EXPECT_TRUE(segment->needs_sync());
  EXPECT_EQ(segment->sync(), 0);
  EXPECT_FALSE(segment->needs_sync());
  EXPECT_EQ(segment->append("three|"), 0);
  EXPECT_TRUE(segment->needs_sync());
  EXPECT_EQ(content(), "header|one|two|three|");
}

TEST_P(TailSegmentTest, GoesOnBeyondWhatWasReserved) {
  const auto segment = create(GetParam());
  std::string all = "header|";
  for (int i = 0; i < 300; ++i) {
    const std::string record(7'001, static_cast<char>('a' + i % 26));
    ASSERT_EQ(segment->append(record), 0);
    all += record;
  }
  EXPECT_GT(all.size(), 2 * kReserved - 7'001);
  EXPECT_EQ(content(), all);
}

TEST_P(TailSegmentTest, ExistingFileIsLeftAlone) {
  const auto segment = create(GetParam());
  int error = 0;
  EXPECT_EQ(TailSegment::create(folder_ / "tail", "another|", GetParam(), error), nullptr);
  EXPECT_EQ(error, EEXIST);
  EXPECT_EQ(content(), "header|");
}

INSTANTIATE_TEST_SUITE_P(Both, TailSegmentTest, ::testing::Values(TailMode::kMapped, TailMode::kAppend),
                         [](const auto& mode) {
                           return mode.param == TailMode::kMapped ? "Mapped" : "Append";
                         });

using MappedTail = TailSegmentTest;

TEST_F(MappedTail, SpaceIsReservedBeforeItIsMapped) {
  const auto segment = create(TailMode::kMapped);
  struct stat facts = {};
  ASSERT_EQ(::stat((folder_ / "tail").c_str(), &facts), 0);
  EXPECT_EQ(static_cast<std::size_t>(facts.st_size), kReserved);
  EXPECT_GE(static_cast<std::size_t>(facts.st_blocks) * 512, kReserved) << "a sparse file";
}

TEST_F(MappedTail, LimitOnFileSizesMakesItAppend) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int error = 0;
    const auto segment = TailSegment::create(folder_ / "tail", "header|", TailMode::kMapped, error);
    ::_exit(segment && fs::file_size(folder_ / "tail") == 7 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

// A record that runs over the reserved space and finds no more leaves nothing of itself.
TEST_F(MappedTail, RecordThatFindsNoRoomLeavesNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kReserved, kReserved};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int error = 0;
    const auto segment = TailSegment::create(folder_ / "tail", "header|", TailMode::kMapped, error);
    const std::string large(kReserved, 'x');
    const bool refused = segment && segment->append(large) == EFBIG;
    ::_exit(refused && segment->append("small|") == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(content(), "header|small|");
}

}  // namespace
}  // namespace ranklog::writer
