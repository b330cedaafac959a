#include <gtest/gtest.h>

#include <cmath>

#include "logs.hpp"
#include "plain_table.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

using sql::SqlValue;
using test::ask;
using test::identity_of_rank;
using test::RankFileBuilder;
using test::SqlRows;
using test::TempDir;

std::int64_t operator""_i(unsigned long long value) {
  return static_cast<std::int64_t>(value);
}
std::string operator""_t(const char* text, std::size_t size) {
  return {text, size};
}
constexpr std::monostate kNull;

// Rank 0 of a first launch that logged steps 0 to 9, and of a second one that went on from step 6.
class TwoAttempts : public ::testing::Test {
 protected:
  TwoAttempts() {
    Identity who = identity_of_rank(0);
    {
      RankFileBuilder file(test::rank_path(dir_.path(), who), who);
      file.operation(ConfigEntry{"lr", "0.1"}).operation(ConfigEntry{"seed", "7"});
      for (int step = 0; step < 10; ++step) {
        file.row(step, {{"loss", 10.0 - step}});
        if (step == 3 || step == 7) file.seal();
        if (step == 2 || step == 8) file.operation(Event{0, 0, step, "barrier", "{}"});
      }
      file.seal();
    }
    who.launch_token = "t1";
    who.resume_step = 6;
    RankFileBuilder file(test::rank_path(dir_.path(), who, 1), who, test::kStartTimeNs + 60'000'000'000);
    file.operation(ConfigEntry{"lr", "0.05"});
    for (int step = 6; step < 12; ++step) file.row(step, {{"loss", 100.0 + step}, {"acc", 0.5}});
    file.finish();
    database_ = std::make_unique<sql::Database>(test::open_logs(dir_.path()));
  }

  SqlRows ask(const std::string& sql) { return test::ask(*database_, sql); }

  TempDir dir_;
  std::unique_ptr<sql::Database> database_;
};

TEST_F(TwoAttempts, SeriesCountsOnlyWhatStands) {
  EXPECT_EQ(ask("SELECT attempt, key, count, min, max, last, first_step, last_step FROM series ORDER BY "
                "attempt, key"),
            (SqlRows{{0_i, "loss"_t, 6_i, 5.0, 10.0, 5.0, 0_i, 5_i},
                     {1_i, "acc"_t, 6_i, 0.5, 0.5, 0.5, 6_i, 11_i},
                     {1_i, "loss"_t, 6_i, 106.0, 111.0, 111.0, 6_i, 11_i}}));
  EXPECT_EQ(ask("SELECT count, min, last_step FROM series WHERE attempt = 0 AND all_attempts = 1"),
            (SqlRows{{10_i, 1.0, 9_i}}));
}

TEST_F(TwoAttempts, HistoryHasEachStepOnceAndAColumnAKey) {
  const SqlRows rows = ask("SELECT attempt, step, \"loss\", acc FROM history ORDER BY step");
  ASSERT_EQ(rows.size(), 12u);
  EXPECT_EQ(rows[5], (std::vector<SqlValue>{0_i, 5_i, 5.0, kNull}));
  EXPECT_EQ(rows[6], (std::vector<SqlValue>{1_i, 6_i, 106.0, 0.5}));
  EXPECT_EQ(ask("SELECT step FROM history WHERE step >= 4 AND step < 6.5 ORDER BY step"),
            (SqlRows{{4_i}, {5_i}, {6_i}}));
  EXPECT_EQ(ask("SELECT count(*) FROM history WHERE rank = 1"), (SqlRows{{0_i}}));
}

TEST_F(TwoAttempts, ConfigIsThatOfTheNewestAttemptThatSetIt) {
  EXPECT_EQ(ask("SELECT key, value, attempt FROM config ORDER BY key"),
            (SqlRows{{"lr"_t, 0.05, 1_i}, {"seed"_t, 7_i, 0_i}}));
  EXPECT_EQ(ask("SELECT value FROM config WHERE key = 'lr' AND all_attempts = 1 ORDER BY attempt"),
            (SqlRows{{0.1}, {0.05}}));
}

TEST_F(TwoAttempts, EventsOfReplacedStepsAreHidden) {
  EXPECT_EQ(ask("SELECT step, kind FROM events"), (SqlRows{{2_i, "barrier"_t}}));
  EXPECT_EQ(ask("SELECT count(*) FROM events WHERE all_attempts = 1"), (SqlRows{{2_i}}));
}

TEST_F(TwoAttempts, RunsHaveARowAFile) {
  EXPECT_EQ(ask("SELECT attempt, rank, state, rows, last_step, resume_step, superseded_from FROM runs "
                "ORDER BY attempt"),
            (SqlRows{{0_i, 0_i, "crashed"_t, 10_i, 9_i, kNull, 6_i},
                     {1_i, 0_i, "finished"_t, 6_i, 11_i, 6_i, kNull}}));
  EXPECT_EQ(ask("SELECT started, start_time, exit_code FROM runs WHERE attempt = 1"),
            (SqlRows{{"2023-11-14T22:14:20.000Z"_t, 1700000060.0, 0_i}}));
}

// 40 NaN of 50 must not look healthy.
TEST(SqlTables, NanIsCountedAndTellsWhereItBegan) {
  const TempDir dir;
  for (int rank = 0; rank < 2; ++rank) {
    const Identity who = identity_of_rank(rank, 2);
    RankFileBuilder file(test::rank_path(dir.path(), who), who);
    for (int step = 0; step < 50; ++step) {
      file.row(step, {{"loss", step < 10 + rank ? 1.0 : std::nan("")}});
      if (step == 24) file.seal();
    }
    file.finish();
  }
  sql::Database database(test::open_logs(dir.path()));
  EXPECT_EQ(ask(database, "SELECT rank, count, numbers, nan_count, max, last FROM series ORDER BY rank"),
            (SqlRows{{0_i, 50_i, 10_i, 40_i, 1.0, kNull}, {1_i, 50_i, 11_i, 39_i, 1.0, kNull}}));
  EXPECT_EQ(
      ask(database, "SELECT rank, min(step) FROM points WHERE key = 'loss' AND kind = 'nan' GROUP BY rank"),
      (SqlRows{{0_i, 10_i}, {1_i, 11_i}}));
}

TEST(SqlTables, LastIsTheValueLoggedLastNotTheOneOfTheLastChunkId) {
  const TempDir dir;
  const Identity who = identity_of_rank(0);
  RankFileBuilder file(test::rank_path(dir.path(), who), who);
  file.row(5, {{"a", 1.0}}).row(6, {{"a", 2.0}, {"b", 1}}).row(3, {{"a", 3.0}}).seal();
  file.row(9, {{"a", true}});
  sql::Database database(test::open_logs(dir.path()));
  EXPECT_EQ(ask(database, "SELECT last, first_step, last_step, count FROM series WHERE key = 'a'"),
            (SqlRows{{1.0, 3_i, 9_i, 4_i}}));
}

TEST(SqlTables, KeysThatSqlCannotTellApartGetNumbersInHistory) {
  const TempDir dir;
  const Identity who = identity_of_rank(0);
  RankFileBuilder(test::rank_path(dir.path(), who), who)
      .row(0, {{"loss", 1.0}, {"Loss", 2.0}, {"step", 3.0}, {"a \"b\"", 4.0}})
      .finish();
  sql::Database database(test::open_logs(dir.path()));
  EXPECT_EQ(ask(database, "SELECT step, loss, Loss_2, step_2, \"a \"\"b\"\"\" FROM history"),
            (SqlRows{{0_i, 1.0, 2.0, 3.0, 4.0}}));
}

// No SQL text can hold a NUL: not the declaration of the columns, and not a query.
TEST(SqlTables, AKeyWithANulHasAColumnInHistory) {
  const TempDir dir;
  const Identity who = identity_of_rank(0);
  RankFileBuilder(test::rank_path(dir.path(), who), who)
      .row(0, {{std::string("a\0b", 3), 1.0}, {"loss", 2.0}})
      .finish();
  sql::Database database(test::open_logs(dir.path()));
  EXPECT_EQ(ask(database, R"(SELECT loss, "a\x00b" FROM history)"), (SqlRows{{2.0, 1.0}}));
}

// SQLite reads an OR in two scans, and takes rows with the same number for the same row.
TEST(SqlTables, ARecordHasTheSameRowIdWhateverIsShown) {
  const TempDir dir;
  Identity who = identity_of_rank(0);
  const auto artifact = [](const char* name, std::int64_t step) {
    Artifact made;
    made.name = name;
    made.type = "model";
    made.step = step;
    made.metadata_json = "{}";
    return made;
  };
  {
    RankFileBuilder file(test::rank_path(dir.path(), who), who);
    file.row(8, {{"gone", 1.0}}).row(2, {{"stays", 1.0}}).seal();
    file.operation(ConfigEntry{"lr", "1"}).operation(ConfigEntry{"seed", "2"});
    file.operation(Event{0, 0, 8, "gone", "{}"}).operation(Event{0, 0, 2, "stays", "{}"});
    file.operation(artifact("gone", 8)).operation(artifact("stays", 2)).seal();
  }
  who.launch_token = "t1";
  who.resume_step = 6;
  RankFileBuilder file(test::rank_path(dir.path(), who, 1), who, test::kStartTimeNs + 60'000'000'000);
  file.operation(ConfigEntry{"lr", "3"}).row(6, {{"stays", 3.0}}).finish();
  // So many files that two scans of one rank are cheaper than one of all.
  for (int rank = 1; rank < 30; ++rank) {
    const Identity other = identity_of_rank(rank, 30);
    RankFileBuilder(test::rank_path(dir.path(), other), other).finish();
  }
  sql::Database database(test::open_logs(dir.path()));
  const auto both = [&](const std::string& column, const std::string& table) {
    return ask(database, "SELECT " + column + " FROM " + table +
                             " WHERE (all_attempts = 0 AND rank = 0 AND attempt = 0)"
                             " OR (all_attempts = 1 AND local_rank = 0 AND attempt < 1) ORDER BY 1");
  };
  EXPECT_EQ(both("kind", "events"), (SqlRows{{"gone"_t}, {"stays"_t}}));
  EXPECT_EQ(both("name", "artifacts"), (SqlRows{{"gone"_t}, {"stays"_t}}));
  EXPECT_EQ(both("key", "series"), (SqlRows{{"gone"_t}, {"stays"_t}}));
  EXPECT_EQ(both("key", "config"), (SqlRows{{"lr"_t}, {"seed"_t}}));
}

TEST(SqlTables, ConfigValuesKeepTheirTypes) {
  const TempDir dir;
  const Identity who = identity_of_rank(0);
  RankFileBuilder file(test::rank_path(dir.path(), who), who);
  file.operation(ConfigEntry{"float", "1e-3"})
      .operation(ConfigEntry{"int", "9007199254740993"})
      .operation(ConfigEntry{"text", "\"adam\""})
      .operation(ConfigEntry{"flag", "true"})
      .operation(ConfigEntry{"none", "null"})
      .operation(ConfigEntry{"list", "[1,2]"})
      .operation(ConfigEntry{"nan", "NaN"});
  file.finish();
  sql::Database database(test::open_logs(dir.path()));
  EXPECT_EQ(ask(database, "SELECT key, value FROM config"), (SqlRows{{"float"_t, 1e-3},
                                                                     {"int"_t, 9007199254740993_i},
                                                                     {"text"_t, "adam"_t},
                                                                     {"flag"_t, 1_i},
                                                                     {"none"_t, kNull},
                                                                     {"list"_t, "[1,2]"_t},
                                                                     {"nan"_t, "NaN"_t}}));
}

TEST(SqlTables, ArtifactsShowTheirFiles) {
  const TempDir dir;
  const Identity who = identity_of_rank(0);
  Artifact artifact;
  artifact.name = "e-model";
  artifact.type = "model";
  artifact.step = 400;
  artifact.aliases = {"best", "epoch \"1\""};
  artifact.metadata_json = R"({"loss":0.5})";
  artifact.files = {{"model.pt", "checkpoints/step-00000400/model.pt", 1000, "0123", "4567"},
                    {"notes.txt", "files/notes.txt", 24, "89ab", "cdef"}};
  RankFileBuilder file(test::rank_path(dir.path(), who), who);
  file.operation(artifact).finish();
  sql::Database database(test::open_logs(dir.path()));
  EXPECT_EQ(ask(database,
                "SELECT name, type, step, file_count, size, json_extract(aliases, '$[1]'), "
                "json_extract(files, '$[0].path'), json_extract(metadata, '$.loss') FROM artifacts"),
            (SqlRows{{"e-model"_t, "model"_t, 400_i, 2_i, 1024_i, "epoch \"1\""_t,
                      "checkpoints/step-00000400/model.pt"_t, 0.5}}));
}

TEST(SqlTables, ExperimentsStandSideBySide) {
  const TempDir dir;
  for (const char* experiment : {"one", "two"}) {
    Identity who = identity_of_rank(0);
    who.experiment = experiment;
    RankFileBuilder(test::rank_path(dir.path(), who), who).row(0, {{"loss", experiment[0] * 1.0}}).finish();
  }
  sql::Database database(test::open_logs(dir.path()));
  EXPECT_EQ(ask(database, "SELECT experiment, value FROM points ORDER BY experiment"),
            (SqlRows{{"one"_t, 111.0}, {"two"_t, 116.0}}));
  EXPECT_EQ(ask(database, "SELECT value FROM points WHERE experiment GLOB 't*'"), (SqlRows{{116.0}}));
  EXPECT_EQ(ask(database,
                "SELECT a.loss - b.loss FROM history a JOIN history b USING(step) "
                "WHERE a.experiment = 'two' AND b.experiment = 'one'"),
            (SqlRows{{5.0}}));
}

TEST(SqlTables, EveryColumnIsDocumented) {
  for (const auto& table : sql::describe_tables()) {
    EXPECT_FALSE(table.help.empty()) << table.name;
    for (const auto& column : table.columns)
      EXPECT_FALSE(column.help.empty()) << table.name << '.' << column.name;
  }
}

}  // namespace
}  // namespace ranklog
