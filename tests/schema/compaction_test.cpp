#include <gtest/gtest.h>
#include <sqlite3.h>

#include <map>
#include <tuple>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/rank_database.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using test::identity_of_rank;
using test::RankFileBuilder;

using Row = std::tuple<std::int64_t, std::int64_t, std::map<KeyId, std::string>>;  // step, time, JSON values

// By sequence number. Chunks that cannot be read are left out.
std::map<std::uint64_t, Row> rows_of(const RankFile& file) {
  std::map<std::uint64_t, Row> rows;
  for (std::size_t i = 0; i < file.row_groups().size(); ++i) {
    try {
      const RowGroup group = file.load(i);
      for (std::size_t row = 0; row < group.rows(); ++row) {
        std::map<KeyId, std::string> values;
        for (const Column& column : group.columns) append_json(values[column.key()], column.at(row));
        EXPECT_TRUE(
            rows.try_emplace(group.sequence[row], Row{group.step[row], group.time_ns[row], values}).second)
            << "row " << group.sequence[row] << " is there twice";
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDamaged);
    }
  }
  return rows;
}

class CompactionTest : public testing::Test {
 protected:
  // Three sets of keys that take turns, in chunks of a few rows.
  void log(int first, int count) {
    for (int i = first; i < first + count; ++i) {
      if (i % 3 == 0) builder_->row(i, {{"loss", 1.0 / (i + 1)}, {"lr", 1e-3}});
      if (i % 3 == 1) builder_->row(i, {{"note", "text " + std::to_string(i % 7)}});
      if (i % 3 == 2) builder_->row(i, {{"loss", 1.0 / (i + 1)}});
      if (i % 10 == 9) builder_->seal();
    }
    builder_->seal();
  }
  // By SQLite itself, after the builder has closed the file.
  void execute(const char* sql) const {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &connection), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(connection);
  }
  [[nodiscard]] std::size_t chunks() const { return RankFile::open(path_).row_groups().size(); }

  test::TempDir dir_;
  fs::path path_ = dir_.path() / "p" / "e" / "rank-00000.db";
  std::optional<RankFileBuilder> builder_{std::in_place, path_, identity_of_rank(0)};
};

TEST_F(CompactionTest, SmallChunksOfOneSetOfKeysBecomeOne) {
  log(0, 1000);
  const auto before = rows_of(RankFile::open(path_));
  ASSERT_EQ(before.size(), 1000u);
  ASSERT_EQ(chunks(), 300u);
  builder_->merge_small_chunks();
  EXPECT_EQ(chunks(), 3u);
  EXPECT_EQ(rows_of(RankFile::open(path_)), before);
  EXPECT_TRUE(RankFile::open(path_).damage().empty());
  EXPECT_EQ(RankFile::open(path_).info().rows, 1000u);
}

TEST_F(CompactionTest, LoggingGoesOnAfterIt) {
  log(0, 100);
  builder_->merge_small_chunks();
  log(100, 100);
  builder_->merge_small_chunks();
  EXPECT_EQ(chunks(), 3u);
  EXPECT_EQ(rows_of(RankFile::open(path_)).size(), 200u);
}

TEST_F(CompactionTest, FullChunksStayAsTheyAre) {
  for (int i = 0; i < 10'000; ++i) builder_->row(i, {{"loss", 1.0}});
  builder_->seal();
  ASSERT_EQ(chunks(), 3u);  // 4096, 4096, 1808
  builder_->merge_small_chunks();
  EXPECT_EQ(chunks(), 3u);
}

TEST_F(CompactionTest, ViewThatWasOpenBeforeStaysWhatItWas) {
  log(0, 500);
  const RankFile view = RankFile::open(path_);
  const auto before = rows_of(view);
  builder_->merge_small_chunks();
  log(500, 100);
  builder_->finish();
  EXPECT_EQ(rows_of(view), before);
  EXPECT_TRUE(view.damage().empty());
}

TEST_F(CompactionTest, NothingBeginsAfterTheDeadline) {
  log(0, 100);
  const std::size_t before = chunks();
  builder_->merge_small_chunks(std::chrono::steady_clock::now());
  EXPECT_EQ(chunks(), before);
}

TEST_F(CompactionTest, DamagedChunkStaysDamagedAndKeepsItsNeighbours) {
  log(0, 300);
  builder_->finish();
  const auto all = rows_of(RankFile::open(path_));
  execute("UPDATE chunk SET data = x'00' || substr(data, 2) WHERE id = 4");
  const auto before = rows_of(RankFile::open(path_));
  ASSERT_LT(before.size(), all.size());
  (void)compact_rank_file(path_);
  EXPECT_EQ(rows_of(RankFile::open(path_)), before);
}

TEST_F(CompactionTest, FinishedFileIsSmallerForIt) {
  log(0, 3000);
  builder_->finish();
  const auto scattered = fs::file_size(path_);
  const Compaction result = compact_rank_file(path_);
  EXPECT_EQ(result.chunks_before, 900u);
  EXPECT_EQ(result.chunks_after, 3u);
  EXPECT_LT(fs::file_size(path_), scattered / 4);
  EXPECT_EQ(rows_of(RankFile::open(path_)).size(), 3000u);
}

// What SQLite itself would do with a broken tree is to write into pages that belong to something else.
TEST_F(CompactionTest, DamagedFileIsRefusedBeforeAByteIsWritten) {
  log(0, 600);
  builder_->finish();
  const std::string whole = test::read_file(path_);
  const auto page = [&](std::size_t number) { return (number - 1) * 512; };
  int refused = 0;
  for (std::size_t number = 20; page(number) + 512 <= whole.size(); number += 11) {
    std::string bytes = whole;
    for (std::size_t i = 0; i < 8; ++i) bytes[page(number) + i] = static_cast<char>(0xA5 + i);
    test::write_file(path_, bytes);
    try {
      (void)compact_rank_file(path_);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), ErrorCode::kDamaged) << error.what();
      EXPECT_EQ(test::read_file(path_), bytes) << "page " << number << ": " << error.what();
    }
  }
  EXPECT_GT(refused, 3);
}

TEST_F(CompactionTest, FileThatLacksRowsIsRefused) {
  log(0, 100);
  builder_->finish();
  execute("DELETE FROM chunk WHERE id = 2");
  const std::string before = test::read_file(path_);
  try {
    (void)compact_rank_file(path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDamaged) << error.what();
    EXPECT_NE(std::string(error.what()).find("ranklog check --repair"), std::string::npos) << error.what();
  }
  EXPECT_EQ(test::read_file(path_), before);
}

TEST_F(CompactionTest, TriggersOfTheFileAreNotRun) {
  log(0, 100);
  builder_->finish();
  execute("CREATE TRIGGER t AFTER DELETE ON chunk BEGIN DELETE FROM event; DELETE FROM meta; END");
  EXPECT_LT(compact_rank_file(path_).chunks_after, 10u);
  EXPECT_EQ(rows_of(RankFile::open(path_)).size(), 100u);
}

// A reader that was in the way when the file ended has left it in WAL mode.
TEST_F(CompactionTest, FileInWalModeIsMadeSmallerToo) {
  log(0, 3000);
  builder_->finish();
  execute("PRAGMA journal_mode = WAL");
  const auto scattered = fs::file_size(path_);
  (void)compact_rank_file(path_);
  EXPECT_LT(fs::file_size(path_), scattered / 4);
  constexpr std::size_t kWriteVersion = 18;  // 2: WAL
  EXPECT_EQ(test::read_file(path_).at(kWriteVersion), 1);
  EXPECT_EQ(rows_of(RankFile::open(path_)).size(), 3000u);
}

TEST_F(CompactionTest, LargeFileIsMadeSmallerToo) {
  log(0, 100);
  builder_->finish();
  execute("CREATE TABLE t AS SELECT zeroblob(35000000) AS x");
  execute("DROP TABLE t");
  ASSERT_GT(fs::file_size(path_), std::uintmax_t{32} << 20);
  (void)compact_rank_file(path_);
  EXPECT_LT(fs::file_size(path_), std::uintmax_t{1} << 20);
}

TEST_F(CompactionTest, FileThatIsBeingWrittenIsRefused) {
  log(0, 100);
  try {
    (void)compact_rank_file(path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBusy);
    EXPECT_NE(std::string(error.what()).find("has not ended"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ranklog
