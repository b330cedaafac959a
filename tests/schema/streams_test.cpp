// System metrics and console lines beside the history of one file.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/experiment.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "schema/sample_rows.hpp"
#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using test::identity_of_rank;
using test::RankFileBuilder;
using test::TempDir;

std::vector<RowGroup> load_all(const RankFile& file, Stream stream) {
  std::vector<RowGroup> groups;
  for (std::size_t i = 0; i < file.row_groups(stream).size(); ++i) groups.push_back(file.load(i, stream));
  return groups;
}

// Rows of all streams take turns; all have the keys "x" and "text", so that only the stream tells them apart.
void log_all_streams(RankFileBuilder& builder, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    for (const Stream stream : kStreams) {
      builder.row(i + 1000 * static_cast<int>(index_of(stream)),
                  {{"x", i + 0.5}, {"text", to_string(stream)}}, stream);
    }
  }
}

void expect_all_streams(const fs::path& path, std::size_t rows) {
  const RankFile file = RankFile::open(path);
  EXPECT_EQ(file.info().rows, rows) << "of the history alone";
  EXPECT_EQ(file.info().last_step, static_cast<std::int64_t>(rows) - 1);
  EXPECT_EQ(file.keys().size(), 2u);
  EXPECT_TRUE(file.damage().empty());
  for (const Stream stream : kStreams) {
    std::size_t found = 0;
    for (const RowGroup& group : load_all(file, stream)) {
      EXPECT_EQ(group.stream, stream);
      for (std::size_t row = 0; row < group.rows(); ++row) {
        const auto step = static_cast<std::int64_t>(found + 1000 * index_of(stream));
        EXPECT_EQ(group.step[row], step);
        EXPECT_EQ(group.columns.at(1).at(row).text(), to_string(stream));
        ++found;
      }
    }
    EXPECT_EQ(found, rows);
    for (const RowGroupInfo& info : file.row_groups(stream)) EXPECT_EQ(info.stream, stream);
  }
}

TEST(Streams, RowsOfEachStreamStayTogetherFromTheTailToTheMergedChunk) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  log_all_streams(builder, 0, 10);
  expect_all_streams(path, 10);
  builder.seal();
  log_all_streams(builder, 10, 10);
  expect_all_streams(path, 20);
  builder.seal().merge_small_chunks();
  expect_all_streams(path, 20);
  EXPECT_EQ(RankFile::open(path).row_groups(Stream::kConsole).size(), 1u);
  builder.finish();
  expect_all_streams(path, 20);
}

TEST(Streams, FileWithoutHistoryHasNoRowsAndSupersedesNothing) {
  const TempDir dir;
  RankFileBuilder(dir / "rank-00000.db", identity_of_rank(0)).row(5, {{"x", 1}}).finish();
  Identity second = identity_of_rank(0);
  second.launch_token = "t1";
  second.resume_step = 0;
  RankFileBuilder builder(dir / "rank-00000.1.db", second, test::kStartTimeNs + 1'000'000'000);
  builder.row(0, {{"cpu", 1.5}}, Stream::kSystem).row(7, {{"text", "hello"}}, Stream::kConsole);
  for (const bool sealed : {false, true}) {
    if (sealed) builder.seal();
    const ScanResult found = scan(std::vector<fs::path>{dir.path()});
    const Experiment& experiment = found.experiments.at(0);
    EXPECT_FALSE(experiment.attempts.at(1).has_rows());
    EXPECT_FALSE(experiment.attempts.at(1).segments.at(0).info.last_step);
    EXPECT_FALSE(experiment.superseded_from(0));
  }
}

// The column is outside the chunk's checksum; what is inside it wins.
TEST(Streams, FalseStreamInTheTableIsNoticedAndPutRight) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  builder.row(0, {{"x", 1}}).row(0, {{"x", 2}}, Stream::kSystem);
  builder.finish();
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  for (const char* number : {"1", "77", "256", "-1"}) {
    const std::string sql = std::string("UPDATE chunk SET stream = ") + number + " WHERE id = 1";
    ASSERT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    const RankFile file = RankFile::open(path);
    EXPECT_EQ(file.row_groups().size(), 1u) << number;
    EXPECT_EQ(file.row_groups(Stream::kSystem).size(), 1u) << number;
    EXPECT_EQ(file.damage().size(), 1u) << number;
  }
  sqlite3_close(connection);
}

TEST(Streams, SomeKeysOfAGroupComeWithoutTheOthers) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  for (const bool sealed : {false, true}) {
    for (int i = 0; i < 50; ++i) {
      builder.row(i, {{"a", i}, {"b", 0.5 * i}, {"c", "text"}});
      builder.row(i, {{"a", -i}, {"c", "other"}}, Stream::kSystem);
    }
    if (!sealed) builder.seal();
  }
  const RankFile file = RankFile::open(path);
  ASSERT_EQ(file.row_groups().size(), 2u) << "a chunk and the tail";
  const std::vector<KeyId> wanted = {1, 2, 99};
  for (const Stream stream : {Stream::kHistory, Stream::kSystem}) {
    for (std::size_t i = 0; i < file.row_groups(stream).size(); ++i) {
      RowGroup expected = file.load(i, stream);
      std::erase_if(expected.columns, [](const Column& column) { return column.key() == 0; });
      EXPECT_TRUE(test::same_group(file.load(i, wanted, stream), expected));
      EXPECT_TRUE(file.load(i, std::span<const KeyId>(), stream).columns.empty());
      EXPECT_EQ(file.load(i, std::span<const KeyId>(), stream).rows(), 50u);
    }
  }
}

TEST(Streams, SomeKeysOfAChunkThatBecamePartOfAGreaterOneAreFound) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  for (int i = 0; i < 30; ++i) {
    builder.row(i, {{"a", i}, {"b", 2 * i}});
    if (i % 10 == 9) builder.seal();
  }
  const RankFile file = RankFile::open(builder.path());
  builder.merge_small_chunks();
  const std::vector<KeyId> wanted = {1};
  const RowGroup group = file.load(1, wanted);
  ASSERT_EQ(group.columns.size(), 1u);
  ASSERT_EQ(group.rows(), 10u);
  EXPECT_EQ(group.columns[0].at(0).as_int64(), 20);
}

}  // namespace
}  // namespace ranklog
