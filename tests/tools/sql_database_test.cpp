#include "ranklog/sql/database.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "logs.hpp"
#include "plain_table.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using sql::SqlValue;
using test::ask;
using test::identity_of_rank;
using test::RankFileBuilder;
using test::SqlRows;
using test::TempDir;

std::string error_of(sql::Database& database, const std::string& sql) {
  try {
    (void)ask(database, sql);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(SqlDatabase, NothingButReadingIsAllowed) {
  const TempDir dir;
  const Identity who = identity_of_rank(0);
  RankFileBuilder(test::rank_path(dir.path(), who), who).row(0, {{"loss", 1.0}}).finish();
  const fs::path victim = dir / "victim.db";
  sql::Database database(test::open_logs(dir.path()));
  for (const std::string& sql : {
           "ATTACH '" + victim.string() + "' AS other",
           "VACUUM INTO '" + victim.string() + "'",
           std::string("CREATE TABLE t(x)"),
           std::string("CREATE TEMP TABLE t AS SELECT 1"),
           std::string("CREATE VIRTUAL TABLE t USING points"),
           std::string("INSERT INTO points(step) VALUES(1)"),
           std::string("UPDATE points SET value = 0"),
           std::string("DELETE FROM points"),
           std::string("DROP TABLE points"),
           std::string("UPDATE sqlite_master SET sql = ''"),
           std::string("PRAGMA journal_mode = DELETE"),
           std::string("PRAGMA writable_schema = 1"),
           std::string("SELECT load_extension('x')"),
           std::string("BEGIN"),
           std::string("DETACH main"),
       }) {
    EXPECT_NE(error_of(database, sql), "no error") << sql;
  }
  EXPECT_FALSE(fs::exists(victim));
  EXPECT_EQ(ask(database, "SELECT value FROM points"), (SqlRows{{1.0}}));
}

TEST(SqlDatabase, WhatCannotBeReadIsNoMistakeInTheStatement) {
  const TempDir dir;
  const Identity who = identity_of_rank(0);
  const fs::path path = test::rank_path(dir.path(), who);
  RankFileBuilder(path, who).operation(Event{0, 0, 1, "barrier", "{}"}).seal();
  const auto catalog = test::open_logs(dir.path());
  sql::Database database(catalog);
  (void)catalog->open(catalog->files()[0]);
  fs::remove(path);
  try {
    (void)ask(database, "SELECT * FROM events");
    FAIL() << "the file is gone";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound) << error.what();
  }
  EXPECT_NE(error_of(database, "SELECT rnk FROM points").find("no such column"), std::string::npos);
}

TEST(SqlDatabase, HarmlessQuestionsAboutTheTablesAreAnswered) {
  const TempDir dir;
  sql::Database database(std::make_shared<sql::Catalog>(std::vector<Experiment>()));
  EXPECT_GT(ask(database, "SELECT name FROM pragma_table_info('points')").size(), 10u);
  EXPECT_GT(ask(database, "PRAGMA table_xinfo(points)").size(), 14u);
  EXPECT_FALSE(ask(database, "EXPLAIN QUERY PLAN SELECT * FROM points WHERE rank = 1").empty());
  EXPECT_EQ(ask(database, "SELECT count(*) FROM points"), (SqlRows{{std::int64_t{0}}}));
}

TEST(SqlDatabase, MistakesAreNamedInOneLine) {
  sql::Database database(std::make_shared<sql::Catalog>(std::vector<Experiment>()));
  EXPECT_NE(error_of(database, "SELECT * FORM points").find("near \"FORM\""), std::string::npos);
  EXPECT_NE(error_of(database, "SELECT * FROM point").find("no such table: point"), std::string::npos);
  EXPECT_NE(error_of(database, "SELECT 1; SELECT 2").find("one SQL statement"), std::string::npos);
  EXPECT_NE(error_of(database, "  -- nothing").find("empty"), std::string::npos);
  EXPECT_NE(error_of(database, std::string("SELECT 1\0x", 10)).find("NUL"), std::string::npos);
  EXPECT_EQ(ask(database, "SELECT 1;  -- and no more\n ;"), (SqlRows{{std::int64_t{1}}}));
}

// 256 files in one statement: more than SQLite could attach.
TEST(SqlDatabase, ManyRankFilesAreOneTable) {
  const TempDir dir;
  constexpr int kRanks = 256;
  for (int rank = 0; rank < kRanks; ++rank) {
    const Identity who = identity_of_rank(rank, kRanks);
    RankFileBuilder(test::rank_path(dir.path(), who), who)
        .row(0, {{"loss", rank * 0.5}, {"big", rank}})
        .row(1, {{"loss", rank * 2.0}});
  }
  const auto catalog = test::open_logs(dir.path());
  sql::Database database(catalog);
  EXPECT_EQ(ask(database, "SELECT count(*), count(DISTINCT rank), sum(value) FROM points WHERE key = 'loss'"),
            (SqlRows{{std::int64_t{512}, std::int64_t{256}, 255 * 256 / 2 * 2.5}}));
  // One rank's question opens one file.
  const auto before = catalog->counts();
  EXPECT_EQ(ask(database, "SELECT value FROM points WHERE rank = 17 AND key = 'big'"),
            (SqlRows{{std::int64_t{17}}}));
  EXPECT_LE(catalog->counts().files_opened - before.files_opened, 1u);
}

std::size_t open_rank_files() {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry.path(), gone).extension() == ".db") ++count;
  }
  return count;
}

TEST(SqlDatabase, WhatIsReadOfAFileThatWasPushedOutDoesNotHoldItOpen) {
  const TempDir dir;
  constexpr int kRanks = static_cast<int>(sql::Catalog::kOpenFiles) + 1;
  for (int rank = 0; rank < kRanks; ++rank) {
    const Identity who = identity_of_rank(rank, kRanks);
    RankFileBuilder(test::rank_path(dir.path(), who), who).row(0, {{"loss", 1.0}}).finish();
  }
  const auto catalog = test::open_logs(dir.path());
  auto first = catalog->open(catalog->files()[0]);
  const std::weak_ptr<const sql::OpenFile> alive = first;
  for (const sql::SourceFile& source : catalog->files().subspan(1)) (void)catalog->open(source);
  EXPECT_NE(catalog->load(first, 0), nullptr);
  first.reset();
  EXPECT_TRUE(alive.expired());
}

// The reader of the join's outer table goes on in a file that the inner one has long pushed out.
TEST(SqlDatabase, AJoinOverManyFilesHoldsNoMoreOpenThanPromised) {
  const TempDir dir;
  constexpr int kRanks = 80;
  for (int rank = 0; rank < kRanks; ++rank) {
    const Identity who = identity_of_rank(rank, kRanks);
    RankFileBuilder file(test::rank_path(dir.path(), who), who);
    for (int step = 0; step < 3; ++step) file.row(step, {{"loss", 1.0 * rank}}).seal();
    file.finish();
  }
  sql::Database database(test::open_logs(dir.path()));
  std::size_t rows = 0;
  std::size_t most = 0;
  database.query(
      "SELECT a.rank, b.rank FROM points a CROSS JOIN points b WHERE a.key = 'loss' AND b.key = 'loss' "
      "AND a.rank < 6 AND b.step <= a.step",
      [](const auto&) {},
      [&](const auto&) {
        if (rows++ % 7 == 0) most = std::max(most, open_rank_files());
      });
  EXPECT_EQ(rows, std::size_t{6 * (1 + 2 + 3) * kRanks});
  EXPECT_GE(most, sql::Catalog::kOpenFiles);
  // One more for each of the two readers.
  EXPECT_LE(most, sql::Catalog::kOpenFiles + 2);
}

// Cost follows what matches: a key that stands in few chunks, a range of steps, a moment.
TEST(SqlDatabase, ChunksThatCannotMatchAreNotDecoded) {
  const TempDir dir;
  const Identity who = identity_of_rank(0);
  RankFileBuilder file(test::rank_path(dir.path(), who), who);
  constexpr int kChunks = 40;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    for (int i = 0; i < 25; ++i) file.row(chunk * 25 + i, {{"loss", 1.0 * i}});
    if (chunk == 13) file.row(chunk * 25 + 24, {{"eval/acc", 0.5}});
    file.seal();
  }
  file.finish();
  const auto loaded_by = [&](const std::string& sql) {
    const auto catalog = test::open_logs(dir.path());
    sql::Database database(catalog);
    EXPECT_FALSE(ask(database, sql).empty()) << sql;
    return catalog->counts().groups_loaded;
  };
  EXPECT_EQ(loaded_by("SELECT value FROM points WHERE key = 'eval/acc'"), 1u);
  EXPECT_EQ(loaded_by("SELECT value FROM points WHERE key GLOB 'eval/*'"), 1u);
  EXPECT_EQ(loaded_by("SELECT value FROM points WHERE step = 30 AND key = 'loss'"), 1u);
  EXPECT_EQ(loaded_by("SELECT value FROM points WHERE step BETWEEN 20 AND 30 AND key = 'loss'"), 2u);
  EXPECT_EQ(loaded_by("SELECT value FROM points WHERE key = 'loss' AND time < 1700000000.020"), 1u);
  EXPECT_EQ(loaded_by("SELECT count(*) FROM points WHERE rank = 1"), 0u);
  EXPECT_EQ(loaded_by("SELECT count, max FROM series WHERE key = 'loss'"), 0u);
  EXPECT_EQ(loaded_by("SELECT rows FROM runs"), 0u);
  EXPECT_EQ(loaded_by("SELECT count(*) FROM points WHERE key = 'loss'"), std::uint64_t{kChunks});
}

TEST(SqlDatabase, RowsAreSeenWhileTheFileIsBeingWritten) {
  const TempDir dir;
  const Identity who = identity_of_rank(0);
  RankFileBuilder file(test::rank_path(dir.path(), who), who);
  for (int step = 0; step < 10; ++step) {
    file.row(step, {{"loss", 1.0}});
    if (step == 5) file.seal();
    sql::Database database(test::open_logs(dir.path()));
    EXPECT_EQ(ask(database, "SELECT count(*) FROM points"), (SqlRows{{std::int64_t{step + 1}}}));
    EXPECT_EQ(ask(database, "SELECT count, last_step FROM series"),
              (SqlRows{{std::int64_t{step + 1}, std::int64_t{step}}}));
    EXPECT_EQ(ask(database, "SELECT count(*) FROM history"), (SqlRows{{std::int64_t{step + 1}}}));
  }
}

TEST(SqlDatabase, ADamagedChunkIsNamedAndTheRestIsRead) {
  const TempDir dir;
  const Identity who = identity_of_rank(0);
  const fs::path path = test::rank_path(dir.path(), who);
  {
    RankFileBuilder file(path, who);
    for (int chunk = 0; chunk < 3; ++chunk) {
      for (int i = 0; i < 10; ++i)
        file.row(chunk * 10 + i, {{"loss", 0.25}, {"note", "chunk" + std::to_string(chunk)}});
      file.seal();
    }
    file.finish();
  }
  test::PlainDatabase raw(path.string());
  raw.execute("UPDATE chunk SET data = substr(data, 1, length(data) - 3) || x'000000' WHERE id = 2");
  const auto catalog = test::open_logs(dir.path());
  sql::Database database(catalog);
  EXPECT_EQ(ask(database, "SELECT count(*) FROM points WHERE key = 'loss'"), (SqlRows{{std::int64_t{20}}}));
  ASSERT_EQ(catalog->problems().size(), 1u);
  EXPECT_EQ(catalog->problems()[0].code, ErrorCode::kDamaged);
  EXPECT_NE(catalog->problems()[0].message.find("chunk 2"), std::string::npos)
      << catalog->problems()[0].message;
}

}  // namespace
}  // namespace ranklog
