#include "ranklog/schema/salvage.hpp"

#include <gtest/gtest.h>

#include "ranklog/schema/error.hpp"
#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"
#include "support/tmpfs.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using test::identity_of_rank;
using test::RankFileBuilder;

std::string text_of(const RankFile& file, Stream stream) {
  std::string text;
  for (std::size_t i = 0; i < file.row_groups(stream).size(); ++i) {
    const RowGroup group = file.load(i, stream);
    for (std::size_t row = 0; row < group.rows(); ++row) {
      text += std::to_string(group.sequence[row]) + " " + std::to_string(group.step[row]) + " " +
              std::to_string(group.time_ns[row]);
      for (const Column& column : group.columns) {
        text += " " + file.keys()[column.key()].display() + "=";
        append_json(text, column.at(row));
      }
      text += "\n";
    }
  }
  return text;
}

class SalvageTest : public ::testing::Test {
 protected:
  void log_something() {
    builder_.operation(ConfigEntry{"lr", "0.5"}).row(0, {{"loss", 1.5}, {"a\\.b", "text"}}).seal();
    builder_.row(0, {{"cpu", 50.0}}, Stream::kSystem).row(1, {{"loss", 0.5}, {"a\\.b", nullptr}});
    builder_.operation(Event{0, 0, 1, "barrier", "{}"})
        .operation(RunFile{0, 0, "m.png", "files/x", 1, "m", "s", "file"});
    builder_.row(0, {{"text", "hello"}, {"stderr", false}}, Stream::kConsole);
  }
  void expect_same(const fs::path& copy) const {
    const RankFile a = RankFile::open(source_);
    const RankFile b = RankFile::open(copy);
    EXPECT_EQ(b.info().identity, a.info().identity);
    EXPECT_EQ(b.info().start_time_ns, a.info().start_time_ns);
    EXPECT_EQ(b.info().end_state, a.info().end_state);
    EXPECT_EQ(b.info().end_time_ns, a.info().end_time_ns);
    EXPECT_EQ(b.info().heartbeat_ns, a.info().heartbeat_ns);
    EXPECT_EQ(b.info().rows, a.info().rows);
    EXPECT_EQ(b.keys(), a.keys());
    for (const Stream stream : kStreams) EXPECT_EQ(text_of(b, stream), text_of(a, stream));
    EXPECT_EQ(b.config().size(), a.config().size());
    ASSERT_EQ(b.events().size(), a.events().size());
    for (std::size_t i = 0; i < a.events().size(); ++i)
      EXPECT_EQ(b.events()[i].sequence, a.events()[i].sequence);
    EXPECT_EQ(b.files().size(), a.files().size());
    EXPECT_TRUE(b.damage().empty());
  }

  test::TempDir dir_;
  const fs::path source_ = dir_ / "rank-00000.db";
  const fs::path copy_ = dir_ / "copy" / "rank-00000.db";
  RankFileBuilder builder_{source_, identity_of_rank(0)};

  void SetUp() override { fs::create_directory(copy_.parent_path()); }
};

TEST_F(SalvageTest, CopyOfALiveFileHoldsItsTailAndIsOneFile) {
  log_something();
  const Salvage salvage = copy_rank_file(source_, copy_);
  EXPECT_EQ(salvage.rows, 2u);
  EXPECT_EQ(salvage.rows_missing, 0u);
  expect_same(copy_);
  EXPECT_EQ(std::distance(fs::directory_iterator(copy_.parent_path()), {}), 1)
      << "no -wal, no temporary file";
}

TEST_F(SalvageTest, CopyOfAFinishedFileIsFinished) {
  log_something();
  builder_.finish(EndState::kFailed, 3);
  (void)copy_rank_file(source_, copy_);
  expect_same(copy_);
  EXPECT_EQ(RankFile::open(copy_).info().exit_code, 3);
}

TEST_F(SalvageTest, DamagedChunksAreLeftOutAndCounted) {
  log_something();
  builder_.seal().finish();
  test::ruin_chunks(source_);
  const std::string before = test::read_file(source_);
  const Salvage salvage = copy_rank_file(source_, copy_);
  EXPECT_EQ(salvage.rows, 0u);
  EXPECT_EQ(salvage.rows_missing, 2u);
  EXPECT_FALSE(salvage.damage.empty());
  EXPECT_EQ(test::read_file(source_), before) << "the original is never touched";
  const RankFile copy = RankFile::open(copy_);
  EXPECT_TRUE(copy.damage().empty());
  EXPECT_EQ(copy.config().size(), 1u);
}

TEST_F(SalvageTest, WhatIsThereAlreadyStays) {
  log_something();
  test::write_file(copy_, "mine");
  try {
    (void)copy_rank_file(source_, copy_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBusy);
  }
  EXPECT_EQ(test::read_file(copy_), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(copy_.parent_path()), {}), 1);
}

// Whatever the size at which the disk is full: the copy holds every row, or there is none, and the error says
// why.
TEST_F(SalvageTest, OnAFullDiskTheCopyIsWholeOrNotThere) {
  for (int i = 0; i < 58; ++i) builder_.row(i, {{"loss", 1.0 / (i + 1)}}).seal();
  int copied = 0, refused = 0;
  for (int kibibytes = 16; kibibytes <= 160; kibibytes += 8) {
    const test::Tmpfs disk(kibibytes);
    if (!disk.is_mounted()) GTEST_SKIP() << "this process may not mount a tmpfs";
    const fs::path target = disk.path() / "rank-00000.db";
    try {
      EXPECT_EQ(copy_rank_file(source_, target).rows, 58u);
      EXPECT_EQ(text_of(RankFile::open(target), Stream::kHistory),
                text_of(RankFile::open(source_), Stream::kHistory))
          << kibibytes << " KiB";
      ++copied;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo) << error.what();
      EXPECT_FALSE(fs::exists(target)) << kibibytes << " KiB: " << error.what();
      ++refused;
    }
    const auto names = std::distance(fs::directory_iterator(disk.path()), {});
    EXPECT_EQ(names, fs::exists(target) ? 1 : 0) << kibibytes << " KiB: something is left over";
  }
  EXPECT_GT(copied, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace ranklog
