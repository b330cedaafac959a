#include "ranklog/schema/rank_database.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"
#include "support/tmpfs.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using test::identity_of_rank;
using test::RankFileBuilder;
using test::TempDir;

// The first value of a statement's last row, by SQLite itself.
std::string sqlite_says(const fs::path& path, const std::string& sql) {
  sqlite3* connection = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  std::string answer;
  const auto take = [](void* out, int, char** values, char**) {
    *static_cast<std::string*>(out) = values[0] != nullptr ? values[0] : "NULL";
    return 0;
  };
  char* message = nullptr;
  if (sqlite3_exec(connection, sql.c_str(), take, &answer, &message) != SQLITE_OK) {
    answer = std::string("error: ") + (message != nullptr ? message : "?");
  }
  sqlite3_free(message);
  sqlite3_close(connection);
  return answer;
}

ErrorCode code_of_open(const fs::path& path) {
  try {
    (void)RankFile::open(path);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kUsage;
}

void fill(RankFileBuilder& builder, int rows) {
  for (int i = 0; i < rows; ++i) {
    builder.row(i, {{"loss", 1.0 / (i + 1)}, {"epoch", i / 10}, {"note", "text " + std::to_string(i % 7)}});
    if (i % 50 == 49) builder.seal();
  }
}

// What `body` returns in a process of its own.
template <class Body>
int exit_status_of_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Another user, who also stands for a read-only mount.
template <class Body>
int exit_status_as_nobody(Body body) {
  return exit_status_of_child([&] {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 99;
    return body();
  });
}

TEST(RankDatabase, ExistingFileIsNeverOpenedForWriting) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  test::write_file(path, "precious");
  try {
    (void)RankDatabase::create(path, identity_of_rank(0), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBusy);
  }
  EXPECT_EQ(test::read_file(path), "precious");
}

TEST(RankDatabase, MissingFolderIsNamed) {
  const TempDir dir;
  try {
    (void)RankDatabase::create(dir / "absent" / "rank-00000.db", identity_of_rank(0), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos);
  }
}

TEST(RankDatabase, StockSqliteReadsTheTables) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(2, 4));
  fill(builder, 120);
  const auto check = [&](const char* page_bytes) {
    EXPECT_EQ(sqlite_says(builder.path(), "PRAGMA integrity_check"), "ok");
    EXPECT_EQ(sqlite_says(builder.path(), "PRAGMA application_id"), std::to_string(0x524B4C47));
    EXPECT_EQ(sqlite_says(builder.path(), "PRAGMA user_version"), "1");
    EXPECT_EQ(sqlite_says(builder.path(), "PRAGMA page_size"), page_bytes);
    EXPECT_EQ(sqlite_says(builder.path(), "SELECT value FROM meta WHERE name = 'rank'"), "2");
    EXPECT_EQ(sqlite_says(builder.path(), "SELECT typeof(value) FROM meta WHERE name = 'rank'"), "integer");
    EXPECT_EQ(sqlite_says(builder.path(), "SELECT group_concat(path) FROM key"), "loss,epoch,note");
  };
  EXPECT_EQ(sqlite_says(builder.path(), "PRAGMA journal_mode"), "wal");
  check("4096");
  EXPECT_EQ(sqlite_says(builder.path(), "SELECT sum(rows) FROM chunk"), "100") << "20 are in the tail";
  builder.finish();
  check("512");
  EXPECT_EQ(sqlite_says(builder.path(), "PRAGMA journal_mode"), "delete");
  EXPECT_EQ(sqlite_says(builder.path(), "SELECT sum(rows) FROM chunk"), "120");
}

TEST(RankDatabase, FailedCommitLeavesTheFileAsItWasAndMayBeTriedAgain) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankDatabase database = RankDatabase::create(path, identity_of_rank(0), 1);
  RowGroupBuilder rows;
  rows.add({1, 5, 100, {{0, 1.5}}});
  SealBatch batch;
  batch.new_keys = {KeyPath::flat("loss")};
  batch.chunks = database.encode(rows.take());
  batch.operations = {{2, 100, Event{0, 0, {}, "a", "{}"}}, {2, 100, Event{0, 0, {}, "b", "{}"}}};
  batch.watermark = 2;
  EXPECT_THROW(database.commit(batch), Error) << "one sequence number twice";
  EXPECT_EQ(RankFile::open(path).info().rows, 0u);
  EXPECT_TRUE(RankFile::open(path).keys().empty());
  batch.operations.pop_back();
  database.commit(batch);
  const RankFile file = RankFile::open(path);
  EXPECT_EQ(file.info().rows, 1u);
  ASSERT_EQ(file.keys().size(), 1u);
  EXPECT_EQ(file.events().size(), 1u);
}

TEST(RankDatabase, ActiveTimeAndDurabilityAreThoseOfTheLastCommitThatToldThem) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankDatabase database = RankDatabase::create(path, identity_of_rank(0), 1);
  EXPECT_EQ(RankFile::open(path).info().active_ns, 0);
  SealBatch batch;
  batch.active_ns = 5;
  batch.durability = R"({"journal_mode":"wal"})";
  database.commit(batch);
  batch.active_ns = 9;
  batch.durability.clear();
  database.commit(batch);
  EXPECT_EQ(RankFile::open(path).info().active_ns, 9);
  EXPECT_EQ(RankFile::open(path).info().durability, R"({"journal_mode":"wal"})");
  database.finish(EndState::kFinished, 0, 100, 42);
  EXPECT_EQ(RankFile::open(path).info().active_ns, 42);
}

TEST(RankDatabase, NewerAndProvisionalVersionsAreRefusedByName) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  builder.finish();
  EXPECT_EQ(sqlite_says(builder.path(), "DROP TABLE chunk"), "");
  const std::pair<const char*, const char*> versions[] = {
      {"2", "version 2"}, {"0", "a provisional version of ranklog (format version 0)"}, {"-1", "version -1"}};
  for (const auto& [version, name] : versions) {
    EXPECT_EQ(sqlite_says(builder.path(), std::string("PRAGMA user_version = ") + version), "");
    try {
      (void)RankFile::open(builder.path());
      FAIL() << version;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kVersion);
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("rank-00000.db"), std::string::npos);
    }
  }
}

TEST(RankDatabase, SqliteFileOfSomebodyElseIsNotOurs) {
  const TempDir dir;
  EXPECT_EQ(sqlite_says(dir / "other.db", "CREATE TABLE meta(name, value)"), "");
  EXPECT_EQ(code_of_open(dir / "other.db"), ErrorCode::kNotOurs);
  EXPECT_EQ(sqlite_says(dir / "other.db", "PRAGMA application_id = 5"), "");
  EXPECT_EQ(code_of_open(dir / "other.db"), ErrorCode::kNotOurs);
  // Ours by its number, but without what every rank file has.
  EXPECT_EQ(sqlite_says(dir / "other.db", "PRAGMA application_id = " + std::to_string(0x524B4C47)), "");
  EXPECT_EQ(sqlite_says(dir / "other.db", "PRAGMA user_version = 1"), "");
  EXPECT_EQ(code_of_open(dir / "other.db"), ErrorCode::kDamaged);
}

TEST(RankDatabase, DamagedChunkIsNamedAndTheOthersAreRead) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  fill(builder, 200);
  builder.finish();
  sqlite_says(builder.path(), "UPDATE chunk SET data = x'00' || substr(data, 2) WHERE id = 2");
  sqlite_says(builder.path(), "UPDATE chunk SET stats = x'00' || substr(stats, 2) WHERE id = 3");
  sqlite_says(builder.path(), "UPDATE chunk SET min_step = 7777 WHERE id = 4");
  const RankFile file = RankFile::open(builder.path());
  ASSERT_EQ(file.row_groups().size(), 4u);
  EXPECT_EQ(file.damage().size(), 2u) << "the two whose index does not fit";
  std::size_t rows = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    if (i == 1) {
      EXPECT_THROW((void)file.load(i), Error);
      EXPECT_THROW((void)file.load(i), Error);
    } else {
      rows += file.load(i).rows();
      EXPECT_EQ(file.row_groups()[i].min_step, static_cast<std::int64_t>(i) * 50);
      EXPECT_EQ(file.row_groups()[i].series.size(), 3u);
    }
  }
  EXPECT_EQ(rows, 150u);
  const auto damage = file.damage();
  ASSERT_EQ(damage.size(), 3u);
  EXPECT_EQ(damage[0].place, "chunk 3, statistics");
  EXPECT_EQ(damage[2].place, "chunk 2");
  EXPECT_EQ(damage[2].reason, "checksum mismatch");
}

TEST(RankDatabase, LostKeyNameLeavesItsValues) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  fill(builder, 50);
  builder.finish();
  sqlite_says(builder.path(), "DELETE FROM key WHERE id IN (1, 2)");
  const RankFile file = RankFile::open(builder.path());
  ASSERT_EQ(file.keys().size(), 3u);
  EXPECT_EQ(file.damage().size(), 3u) << "the two keys, and that their table is not as it was written";
  EXPECT_EQ(file.load(0).columns.size(), 3u);
}

std::string places_of_damage(const RankFile& file) {
  (void)file.events();
  (void)file.artifacts();
  (void)file.files();
  std::string places;
  for (const Damage& damage : file.damage()) places += damage.place + ";";
  return places;
}

TEST(RankDatabase, ChangedRecordsAreNamedAndTheRestIsRead) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  Artifact artifact;
  artifact.name = "model";
  artifact.type = "model";
  artifact.metadata_json = "{}";
  artifact.files = {{"b.pt", "files/b.pt", 5, "m1", "s1"}};
  for (int i = 0; i < 2; ++i) {
    builder.row(i, {{"loss", 1.0}}).operation(ConfigEntry{"lr", std::to_string(i)});
    builder.operation(MetricDefinition{"loss", "", false, true, {"min"}, ""});
    builder.operation(SummaryOverride{"best", std::to_string(i)}).operation(Event{0, 0, 3, "note", "{}"});
    builder.operation(artifact).operation(RunFile{0, 0, "n", "files/1", 1, "m", "s", "file"});
    EXPECT_EQ(places_of_damage(RankFile::open(builder.path())), "");
    builder.seal();
    EXPECT_EQ(places_of_damage(RankFile::open(builder.path())), "");
  }
  builder.finish();
  const std::string whole = test::read_file(builder.path());
  const std::pair<const char*, const char*> changes[] = {
      {"UPDATE meta SET value = 'f' WHERE name = 'experiment'", "table meta;"},
      {"UPDATE meta SET name = 'expired' WHERE name = 'end_state'", "table meta;"},
      {"DELETE FROM meta WHERE name = 'digest_meta'", "table meta;"},
      {"UPDATE key SET path = 'lose'", "table key;"},
      {"UPDATE config SET json = '3'", "table config;"},
      {"UPDATE metric SET goal = 'minimize'", "table metric;"},
      {"INSERT INTO summary VALUES('x', 1, '2')", "table summary;"},
      {"UPDATE event SET step = NULL", "table event;"},
      {"UPDATE artifact SET ttl_seconds = 0 WHERE sequence < 9", "table artifact;"},
      {"UPDATE artifact_file SET artifact = 999 WHERE artifact > 9", "table artifact_file;"},
      {"DELETE FROM file WHERE sequence > 9", "table file;"}};
  for (const auto& [change, places] : changes) {
    test::write_file(builder.path(), whole);
    EXPECT_EQ(sqlite_says(builder.path(), change), "");
    const RankFile file = RankFile::open(builder.path());
    EXPECT_EQ(places_of_damage(file), places) << change;
    EXPECT_EQ(file.info().rows, 2u);
  }
}

TEST(RankDatabase, FileWithoutDigestsIsNotDamaged) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  builder.row(0, {{"loss", 1.0}}).operation(Event{0, 0, 3, "note", "{}"}).finish();
  EXPECT_EQ(sqlite_says(builder.path(), "DELETE FROM meta WHERE name LIKE 'digest%'"), "");
  EXPECT_EQ(places_of_damage(RankFile::open(builder.path())), "");
}

TEST(RankDatabase, FileThatWasJustCreatedHasADigestOfItsOwn) {
  const TempDir dir;
  for (const JournalMode mode : {JournalMode::kWal, JournalMode::kPersist}) {
    const fs::path path = dir / (std::string(to_string(mode)) + ".db");
    Durability durability;
    durability.journal = mode;
    const RankDatabase database = RankDatabase::create(path, identity_of_rank(0), 1, durability);
    EXPECT_EQ(places_of_damage(RankFile::open(path)), "");
    EXPECT_EQ(sqlite_says(path, "SELECT count(*) FROM meta WHERE name = 'digest_meta'"), "1");
  }
}

TEST(RankDatabase, FullDiskFailsTheCommitAndNothingElse) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  const int status = exit_status_of_child([&] {
    RankDatabase database = RankDatabase::create(path, identity_of_rank(0), 1);
    RowGroupBuilder rows;
    std::mt19937_64 random(1);
    for (std::uint64_t i = 1; i <= 20'000; ++i) {
      rows.add({i, 0, 0, {{0, ValueView::scalar(ValueKind::kFloat64, random())}}});
    }
    SealBatch batch;
    batch.new_keys = {KeyPath::flat("noise")};
    batch.chunks = database.encode(rows.take());
    batch.watermark = 20'000;
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit tight{60'000, limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &tight);
    try {
      database.commit(batch);
      return 1;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo ||
          std::string(error.what()).find("rank-00000.db") == std::string::npos) {
        return 2;
      }
    }
    if (RankFile::open(path).info().rows != 0) return 3;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    database.commit(batch);
    return RankFile::open(path).info().rows == 20'000 ? 0 : 4;
  });
  EXPECT_EQ(status, 0);
}

TEST(RankDatabase, KilledWritersFileIsWholeAndHoldsEveryAcknowledgedRow) {
  for (int round = 0; round < 5; ++round) {
    const TempDir dir;
    const fs::path path = dir / "rank-00000.db";
    int acknowledged[2];
    ASSERT_EQ(::pipe(acknowledged), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      RankFileBuilder builder(path, identity_of_rank(0));
      for (int i = 0;; ++i) {
        builder.row(i, {{"loss", 1.0 / (i + 1)}});
        if (::write(acknowledged[1], "x", 1) != 1) ::_exit(1);
        if (i % 100 == 99) builder.seal();
      }
    }
    ::close(acknowledged[1]);
    std::uint64_t rows = 0;
    char byte = 0;
    while (rows < 150u + 37u * static_cast<unsigned>(round) && ::read(acknowledged[0], &byte, 1) == 1) ++rows;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(acknowledged[0], &byte, 1) == 1) ++rows;
    ::close(acknowledged[0]);

    const RankFile file = RankFile::open(path);
    EXPECT_TRUE(file.damage().empty());
    EXPECT_GE(file.info().rows, rows);
    EXPECT_LE(file.info().rows, rows + 1) << "the one that was being acknowledged";
    EXPECT_FALSE(file.info().end_state);
    EXPECT_EQ(sqlite_says(path, "PRAGMA integrity_check"), "ok");
    EXPECT_EQ(RankFile::open(path).info().rows, file.info().rows) << "also after another program opened it";
  }
}

// Cut anywhere, the file is refused by name or gives what is left and names what is not; never something
// else.
TEST(RankDatabase, CutDatabaseGivesWhatIsLeftOrIsNamed) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  fill(builder, 5000);
  builder.finish();
  const std::string whole = test::read_file(builder.path());
  std::size_t partly_read = 0;
  for (std::size_t length = 0; length < whole.size(); length += 1367) {
    const fs::path cut = dir / "cut.db";
    test::write_file(cut, std::string_view(whole).substr(0, length));
    try {
      const RankFile file = RankFile::open(cut);
      std::size_t rows = 0;
      for (std::size_t i = 0; i < file.row_groups().size(); ++i) {
        try {
          rows += file.load(i).rows();
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kDamaged);
        }
      }
      EXPECT_LT(rows, 5000u);
      EXPECT_FALSE(file.damage().empty()) << length;
      partly_read += rows != 0;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kDamaged || error.code() == ErrorCode::kNotOurs) << error.what();
      EXPECT_NE(std::string(error.what()).find("cut.db"), std::string::npos);
    }
  }
  EXPECT_GT(partly_read, 0u);
}

// How many rows of `fill()` a stream gives; each must be right.
std::size_t right_rows(const RankFile& file, Stream stream) {
  std::size_t rows = 0;
  for (std::size_t g = 0; g < file.row_groups(stream).size(); ++g) {
    try {
      const RowGroup group = file.load(g, stream);
      for (std::size_t r = 0; r < group.rows(); ++r) {
        EXPECT_EQ(group.columns[0].at(r).as_double(), 1.0 / static_cast<double>(group.step[r] + 1));
      }
      rows += group.rows();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDamaged);
      EXPECT_FALSE(file.damage().empty());
    }
  }
  return rows;
}

TEST(RankDatabase, FlippedBytesNeverPassUnnoticedInRows) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  fill(builder, 300);
  for (int i = 0; i < 30; ++i) {
    builder.row(i, {{"loss", 1.0 / (i + 1)}}, Stream::kSystem);
    if (i % 10 == 9) builder.seal();
  }
  builder.finish();
  const std::string whole = test::read_file(builder.path());
  constexpr std::size_t kPage = 512;
  for (std::size_t i = 0; i < whole.size() * 8; i += i / 8 % kPage < 8 ? 1 : 211) {
    std::string damaged = whole;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << i % 8));
    const fs::path path = dir / "flipped.db";
    test::write_file(path, damaged);
    try {
      const RankFile file = RankFile::open(path);
      const bool all = right_rows(file, Stream::kHistory) == 300 && right_rows(file, Stream::kSystem) == 30;
      EXPECT_TRUE(all || !file.damage().empty()) << "bit " << i;
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kUsage) << error.what();
      EXPECT_NE(std::string(error.what()).find("flipped.db"), std::string::npos) << error.what();
    }
  }
}

TEST(RankDatabase, ReaderBesideAWritingThreadSeesAPrefixOfRowsEachOnce) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  constexpr int kRows = 1500;
  std::atomic<std::uint64_t> logged{0};
  std::thread writer([&] {
    for (int i = 0; i < kRows; ++i) {
      builder.row(i, {{"loss", 1.0}});
      logged = static_cast<std::uint64_t>(i) + 1;
      if (i % 40 == 17) builder.next_segment();
      if (i % 100 == 99) builder.seal();
    }
    builder.finish();
  });
  std::uint64_t views = 0;
  for (std::uint64_t before = 0; before < kRows; ++views) {
    before = logged;
    const RankFile file = RankFile::open(path);
    std::uint64_t rows = 0;
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < file.row_groups().size(); ++i) {
      for (const std::uint64_t sequence : file.load(i).sequence) {
        ++rows;
        last = std::max(last, sequence);
      }
    }
    ASSERT_EQ(rows, last) << "a gap or a row twice";
    ASSERT_GE(rows, before) << "a row whose log() had returned";
    ASSERT_TRUE(file.damage().empty());
  }
  writer.join();
  EXPECT_GT(views, 3u);
}

void make_read_only(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) fs::permissions(entry.path(), fs::perms(0444));
  fs::permissions(folder, fs::perms(0555));
}

// Whoever looks for files that come up must not be able to make their creation or their end fail.
TEST(RankDatabase, ReadersInAHurryDisturbNoWriter) {
  const TempDir dir;
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      for (int rank = 0; rank < 8; ++rank) {
        try {
          (void)RankFile::open(dir / rank_file_name(rank, 0));
        } catch (const Error& error) {
          // Not there yet, or there and still empty.
          EXPECT_TRUE(error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kDamaged)
              << error.what();
        }
      }
    }
  });
  for (int rank = 0; rank < 8; ++rank) {
    RankFileBuilder builder(dir / rank_file_name(rank, 0), identity_of_rank(rank));
    builder.row(0, {{"loss", 1.0}});
    EXPECT_NO_THROW(builder.finish());
    EXPECT_FALSE(fs::exists(builder.path().string() + "-wal"));
  }
  stop = true;
  reader.join();
}

TEST(RankDatabase, FileThatAReaderHoldsEndsInItsWalAndNeverSaysSoWithoutIt) {
  const TempDir dir;
  const TempDir other;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  fill(builder, 60);
  builder.seal();
  sqlite3* holder = nullptr;
  ASSERT_EQ(sqlite3_open(builder.path().c_str(), &holder), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(holder, "BEGIN; SELECT count(*) FROM chunk", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_THROW(builder.finish(), Error);
  EXPECT_EQ(RankFile::open(builder.path()).info().end_state, EndState::kFinished);
  fs::copy(builder.path(), other / "rank-00000.db");
  EXPECT_FALSE(RankFile::open(other / "rank-00000.db").info().end_state);
  EXPECT_EQ(RankFile::open(other / "rank-00000.db").info().rows, 60u);
  sqlite3_close(holder);
}

TEST(RankDatabase, FinishWaitsForAReaderThatHoldsTheFile) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  fill(builder, 60);
  sqlite3* holder = nullptr;
  ASSERT_EQ(sqlite3_open(builder.path().c_str(), &holder), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(holder, "BEGIN; SELECT count(*) FROM chunk", nullptr, nullptr, nullptr), SQLITE_OK);
  std::thread leaves_soon([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    sqlite3_close(holder);
  });
  EXPECT_NO_THROW(builder.finish());
  leaves_soon.join();
  EXPECT_FALSE(fs::exists(builder.path().string() + "-wal"));
  EXPECT_EQ(RankFile::open(builder.path()).info().rows, 60u);
}

// More than SQLite holds in its cache, and as much again that is free.
void fill_with_free_pages(RankFileBuilder& builder) {
  std::mt19937_64 random(1);
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back("key" + std::to_string(i));
  for (int step = 0; step < 40'000; ++step) {
    RankFileBuilder::Fields fields;
    for (const std::string& name : names) fields.emplace_back(name, static_cast<double>(random()));
    builder.row(step, fields);
  }
  builder.seal();
  sqlite_says(builder.path(), "CREATE TABLE t AS SELECT randomblob(3000000) AS x; DROP TABLE t");
}

// SQLite's folder for temporary files, as long as this lives.
struct TemporaryFolder {
  explicit TemporaryFolder(std::string folder) : path(std::move(folder)) {
    sqlite3_temp_directory = path.data();
  }
  ~TemporaryFolder() { sqlite3_temp_directory = nullptr; }
  std::string path;
};

TEST(RankDatabase, FullFolderForTemporaryFilesCostsNoEndRecord) {
  const test::Tmpfs disk(256);
  if (!disk.is_mounted()) GTEST_SKIP() << "this process may not mount a tmpfs";
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  fill_with_free_pages(builder);
  disk.fill();
  const TemporaryFolder full(disk.path().string());
  EXPECT_NO_THROW(builder.finish());
  EXPECT_EQ(RankFile::open(builder.path()).info().end_state, EndState::kFinished);
  EXPECT_EQ(sqlite_says(builder.path(), "PRAGMA freelist_count"), "0") << "it has room in memory";
}

TEST(RankDatabase, NoRoomToMakeAFileSmallerCostsNoEndRecord) {
  const test::Tmpfs disk(32 << 10);
  if (!disk.is_mounted()) GTEST_SKIP() << "this process may not mount a tmpfs";
  Durability durability;
  durability.journal = JournalMode::kDelete;
  RankFileBuilder builder(disk.path() / "rank-00000.db", identity_of_rank(0), test::kStartTimeNs, durability);
  fill_with_free_pages(builder);
  test::write_file(disk.path() / "spare", std::string(std::size_t{64} << 10, 'x'));
  disk.fill();
  fs::remove(disk.path() / "spare");
  EXPECT_NO_THROW(builder.finish());
  EXPECT_EQ(RankFile::open(builder.path()).info().end_state, EndState::kFinished);
  EXPECT_EQ(RankFile::open(builder.path()).info().rows, 40'000u);
  EXPECT_EQ(sqlite_says(builder.path(), "PRAGMA integrity_check"), "ok");
}

TEST(RankDatabase, AnotherUserReadsWhileItIsWritten) {
  const TempDir dir;
  fs::permissions(dir.path(), fs::perms(0755));
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  fill(builder, 60);
  EXPECT_EQ(
      exit_status_as_nobody([&] { return static_cast<int>(RankFile::open(builder.path()).info().rows); }),
      60);
}

TEST(RankDatabase, ReadOnlyFolderIsReadable) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  fill(builder, 60);
  builder.finish();
  {
    // Not ended, but closed: in WAL mode without a WAL.
    RankFileBuilder closed(dir / "rank-00001.db", identity_of_rank(1));
    fill(closed, 60);
  }
  make_read_only(dir.path());
  const auto count = [&](const char* name) {
    return exit_status_as_nobody([&] { return static_cast<int>(RankFile::open(dir / name).info().rows); });
  };
  EXPECT_EQ(count("rank-00000.db"), 60);
  EXPECT_EQ(count("rank-00001.db"), 60);
}

TEST(RankDatabase, WalLeftInAReadOnlyFolderIsReadOrTheRemedyIsNamed) {
  const TempDir dir;
  const fs::path copy = dir / "copy";
  fs::create_directory(copy);
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  fill(builder, 60);
  for (const char* name : {"rank-00000.db", "rank-00000.db-wal"}) fs::copy(dir / name, copy / name);
  fs::permissions(dir.path(), fs::perms(0755));
  make_read_only(copy);
  const int status = exit_status_as_nobody([&] {
    try {
      return static_cast<int>(RankFile::open(copy / "rank-00000.db").info().rows);
    } catch (const Error& error) {
      const std::string text = error.what();
      return error.code() == ErrorCode::kIo && text.find("copy the folder") != std::string::npos ? 1 : 2;
    }
  });
  EXPECT_EQ(status, 1) << "50 rows would be a better answer, if SQLite had one";
}

}  // namespace
}  // namespace ranklog
