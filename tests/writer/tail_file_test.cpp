#include "tail_file.hpp"

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

constexpr std::size_t kCapacity = std::size_t{1} << 20;

// On tmpfs, where space can be reserved and mapped on every machine.
class TailFileTest : public ::testing::TestWithParam<TailMode> {
 protected:
  void SetUp() override {
    if (!fs::exists("/dev/shm")) GTEST_SKIP() << "there is no /dev/shm";
    folder_ = "/dev/shm/ranklog-test-" + std::to_string(::getpid());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::shared_ptr<TailFile> create(TailMode mode) {
    int error = 0;
    auto file = TailFile::create(folder_ / "tail", "header|", mode, kCapacity, error);
    EXPECT_EQ(error, 0);
    return file;
  }
  static void put(TailFile& file, std::size_t offset, std::string_view text) {
    if (file.is_mapped()) {
      text.copy(file.memory().data() + offset, text.size());
    } else {
      EXPECT_EQ(file.write(offset, text.substr(0, 2), text.substr(2)), 0);
    }
  }
  [[nodiscard]] std::string content() const {
    std::string bytes = test::read_file(folder_ / "tail");
    bytes.resize(bytes.find_last_not_of('\0') + 1);
    return bytes;
  }

  fs::path folder_;
};

TEST_P(TailFileTest, ReadsAsWhatWasPut) {
  const auto file = create(GetParam());
  EXPECT_EQ(file->is_mapped(), GetParam() == TailMode::kMapped);
  EXPECT_EQ(std::string_view(file->memory().data(), 8), std::string_view("header|\0", 8));
  put(*file, 7, "one|");
  put(*file, 11, "two|");
  EXPECT_EQ(content(), "header|one|two|");
  EXPECT_EQ(file->sync(), 0);
  file->touch_ahead(15);
  put(*file, 15, "three|");
  EXPECT_EQ(content(), "header|one|two|three|");
  file->remove();
  EXPECT_FALSE(fs::exists(folder_ / "tail"));
}

TEST_P(TailFileTest, ExistingFileIsLeftAlone) {
  const auto file = create(GetParam());
  int error = 0;
  EXPECT_EQ(TailFile::create(folder_ / "tail", "another|", GetParam(), kCapacity, error), nullptr);
  EXPECT_EQ(error, EEXIST);
  EXPECT_EQ(content(), "header|");
}

INSTANTIATE_TEST_SUITE_P(Both, TailFileTest, ::testing::Values(TailMode::kMapped, TailMode::kAppend),
                         [](const auto& mode) {
                           return mode.param == TailMode::kMapped ? "Mapped" : "Append";
                         });

using MappedTail = TailFileTest;

TEST_F(MappedTail, SpaceIsReservedBeforeItIsMapped) {
  const auto file = create(TailMode::kMapped);
  struct stat facts = {};
  ASSERT_EQ(::stat((folder_ / "tail").c_str(), &facts), 0);
  EXPECT_EQ(static_cast<std::size_t>(facts.st_size), kCapacity);
  EXPECT_GE(static_cast<std::size_t>(facts.st_blocks) * 512, kCapacity) << "a sparse file";
}

TEST_F(MappedTail, LimitOnFileSizesMakesItAppendAndIsNoSignal) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int error = 0;
    const auto file = TailFile::create(folder_ / "tail", "header|", TailMode::kMapped, kCapacity, error);
    const bool appends = file && !file->is_mapped() && fs::file_size(folder_ / "tail") == 7;
    const bool refuses = appends && file->write(7, "", std::string(4090, 'x')) == EFBIG;
    ::_exit(refuses && file->write(7, "small|", "") == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(content(), "header|small|");
}

}  // namespace
}  // namespace ranklog::writer
