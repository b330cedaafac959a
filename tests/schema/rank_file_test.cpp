#include "ranklog/schema/rank_file.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/rank_database.hpp"
#include "sample_rows.hpp"
#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using test::identity_of_rank;
using test::RankFileBuilder;
using test::TempDir;

// Sequence -> the row's step and values by key.
struct Row {
  std::int64_t step = 0;
  std::map<std::string, Value> values;
};
std::map<std::uint64_t, Row> rows_of(const RankFile& file) {
  std::map<std::uint64_t, Row> rows;
  for (std::size_t i = 0; i < file.row_groups().size(); ++i) {
    const RowGroup group = file.load(i);
    for (std::size_t r = 0; r < group.rows(); ++r) {
      EXPECT_EQ(rows.count(group.sequence[r]), 0u) << "row " << group.sequence[r] << " twice";
      Row& row = rows[group.sequence[r]];
      row.step = group.step[r];
      for (const Column& column : group.columns) {
        row.values.emplace(file.keys().at(column.key()).display(), Value(column.at(r)));
      }
    }
  }
  return rows;
}

std::uint64_t row_count(const fs::path& path) {
  return rows_of(RankFile::open(path)).size();
}

Error error_of(const fs::path& path) {
  try {
    (void)RankFile::open(path);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kUsage, "no error"};
}

TEST(RankFile, EveryValueComesBackFromTailAndChunk) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  const std::vector<ValueView> values = test::awkward_values();
  RankFileBuilder builder(path, identity_of_rank(0));
  const auto expect_all = [&](const char* where) {
    const auto rows = rows_of(RankFile::open(path));
    ASSERT_EQ(rows.size(), values.size()) << where;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Row& row = rows.at(i + 1);
      EXPECT_TRUE(same_value(row.values.at("value").view(), values[i])) << where << ", value " << i;
      EXPECT_EQ(row.values.size(), i % 2 == 0 ? 2u : 1u) << "missing is not null";
    }
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    RankFileBuilder::Fields fields = {{"value", values[i]}};
    if (i % 2 == 0) fields.emplace_back("sometimes", 1);
    builder.row(static_cast<std::int64_t>(i), fields);
  }
  expect_all("tail");
  builder.seal();
  expect_all("chunk");
  builder.finish();
  expect_all("finished");
}

TEST(RankFile, KeysComeBackWhateverTheyHold) {
  const TempDir dir;
  const std::vector<std::string> keys = {
      "a.b", "a\\.b", "", std::string(300, 'k'), "new\nline", "'\"\\\\", "\xF0\x9F\x9A\x80/\xE2\x82\xAC"};
  for (const bool sealed : {false, true}) {
    const fs::path path = dir / rank_file_name(0, sealed ? 1 : 0);
    RankFileBuilder builder(path, identity_of_rank(0));
    RankFileBuilder::Fields fields;
    for (std::size_t i = 0; i < keys.size(); ++i) fields.emplace_back(keys[i], static_cast<std::int64_t>(i));
    builder.row(0, fields);
    if (sealed) builder.seal();
    const RankFile file = RankFile::open(path);
    const auto rows = rows_of(file);
    ASSERT_EQ(rows.at(1).values.size(), keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(rows.at(1).values.at(keys[i]).view().as_int64(), static_cast<std::int64_t>(i));
    }
    EXPECT_TRUE(file.damage().empty());
  }
}

TEST(RankFile, ManyKeysAndKeysAddedMidRunComeBack) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  RankFileBuilder::Fields fields;
  for (int i = 0; i < 2000; ++i) fields.emplace_back("layer/" + std::to_string(i), i);
  builder.row(0, {{"first", 1}}).seal();
  builder.row(1, fields).seal();
  builder.row(2, {{"last", 1}});
  const RankFile file = RankFile::open(path);
  EXPECT_EQ(file.keys().size(), 2002u);
  EXPECT_EQ(rows_of(file).at(2).values.at("layer/1999").view().as_int64(), 1999);
  EXPECT_EQ(rows_of(file).at(3).values.at("last").view().as_int64(), 1);
}

std::vector<std::string> stored_chunks(const fs::path& path) {
  std::vector<std::string> chunks;
  sqlite3* connection = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  const auto add = [](void* out, int, char** values, char**) {
    static_cast<std::vector<std::string>*>(out)->emplace_back(values[0]);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(connection, "SELECT id || hex(stats) || hex(data) FROM chunk ORDER BY id", add,
                         &chunks, nullptr),
            SQLITE_OK);
  sqlite3_close(connection);
  return chunks;
}

TEST(RankFile, FiveThousandKeysComeBackAndAKeyAddedMidRunRewritesNothing) {
  constexpr std::size_t kKeys = 5000;
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kKeys; ++i) names.push_back("layer/" + std::to_string(i) + "/norm");
  RankFileBuilder::Fields fields;
  for (std::size_t i = 0; i < kKeys; ++i) fields.emplace_back(names[i], 1.0 / static_cast<double>(i + 1));
  for (int step = 0; step < 20; ++step) builder.row(step, fields);
  builder.seal();
  const std::vector<std::string> before = stored_chunks(builder.path());
  fields.emplace_back("a new one", 7);
  for (int step = 20; step < 40; ++step) builder.row(step, fields);
  builder.finish();
  const std::vector<std::string> after = stored_chunks(builder.path());
  ASSERT_EQ(after.size(), before.size() + 1);
  EXPECT_TRUE(std::ranges::equal(before, std::span(after).first(before.size())));
  const RankFile file = RankFile::open(builder.path());
  EXPECT_EQ(file.keys().size(), kKeys + 1);
  ASSERT_EQ(file.row_groups().size(), 2u);
  EXPECT_EQ(file.load(0).columns.size(), kKeys);
  const RowGroup second = file.load(1);
  ASSERT_EQ(second.columns.size(), kKeys + 1);
  EXPECT_EQ(second.columns[kKeys - 1].at(19).as_double(), 1.0 / kKeys);
  EXPECT_EQ(second.columns[kKeys].at(0).as_int64(), 7);
}

TEST(RankFile, IdentityAndEndRecordComeBack) {
  const TempDir dir;
  Identity identity = identity_of_rank(3, 8);
  identity.entity = "team";
  identity.group = "g";
  identity.job_type = "train";
  identity.name = "a name";
  identity.notes = "two\nlines";
  identity.tags = {"x", "with \"quotes\""};
  identity.wandb_run_id = "abc";
  identity.log_strategy = Strategy::kNode;
  identity.node = 1;
  identity.resume_step = 400;
  identity.pid_start_ticks = std::uint64_t{1} << 63;
  identity.program = "train.py";
  identity.arguments = {"--lr", "1e-3", ""};
  identity.git_commit = "0123";
  identity.git_remote = "git@host:x.git";
  identity.libraries = R"({"ranklog":"9"})";
  identity.host_facts = R"({"cpu_count":3})";
  const fs::path path = dir / "rank-00003.db";
  RankFileBuilder builder(path, identity);
  {
    const RankFile file = RankFile::open(path);
    EXPECT_EQ(file.info().identity, identity);
    EXPECT_EQ(file.info().start_time_ns, test::kStartTimeNs);
    EXPECT_FALSE(file.info().end_state);
    EXPECT_FALSE(file.info().last_step);
    EXPECT_EQ(file.info().rows, 0u);
    EXPECT_TRUE(file.row_groups().empty());
  }
  builder.row(7, {{"loss", 1.0}}).row(-2, {{"loss", 1.0}});
  EXPECT_EQ(RankFile::open(path).info().last_step, 7);
  EXPECT_EQ(RankFile::open(path).info().heartbeat_ns, test::kStartTimeNs + 2'000'000);
  builder.finish(EndState::kFailed, 137);
  const FileInfo info = RankFile::open(path).info();
  EXPECT_EQ(info.identity, identity);
  EXPECT_EQ(info.end_state, EndState::kFailed);
  EXPECT_EQ(info.exit_code, 137);
  EXPECT_EQ(info.end_time_ns, test::kStartTimeNs + 2'000'000);
  EXPECT_EQ(info.active_ns, 2'000'000);
  EXPECT_NE(info.durability.find(R"("journal_mode":"wal")"), std::string::npos) << info.durability;
  EXPECT_EQ(info.rows, 2u);
  EXPECT_EQ(info.last_step, 7);
  EXPECT_EQ(info.stored_bytes, fs::file_size(path));
}

TEST(RankFile, RecordsInTheTailStandOnTopOfTheTables) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  Artifact artifact;
  artifact.name = "model";
  artifact.type = "model";
  artifact.metadata_json = "{}";
  artifact.step = 3;
  artifact.ttl_seconds = 0;
  artifact.aliases = {"best"};
  artifact.files = {{"b.pt", "files/b.pt", 5, "m1", "s1"},
                    {"a.pt", "files/a.pt", 6, "m2", "s2"},
                    {"far", "", 0, "", "", "s3://bucket/far", R"({"etag":"e"})"}};
  RankFileBuilder builder(path, identity_of_rank(0));
  builder.operation(ConfigEntry{"lr", "0.1"})
      .operation(ConfigEntry{"seed", "1"})
      .operation(MetricDefinition{"loss", "epoch", false, true, {"min"}, "minimize"})
      .operation(SummaryOverride{"best", "1"})
      .operation(Event{0, 0, 3, "barrier", "{}"})
      .operation(artifact)
      .operation(RunFile{0, 0, "notes.txt", "files/1", 1, "m", "s", "file"})
      .operation(RunFile{0, 0, "media/x.png", "files/2", 2, "m", "s", "media"})
      .seal();
  artifact.name = "data";
  artifact.ttl_seconds.reset();
  builder.operation(ConfigEntry{"lr", "0.2"})
      .operation(ConfigEntry{"new", "\"x\""})
      .operation(MetricDefinition{"loss", "", true, false, {}, ""})
      .operation(SummaryOverride{"best", "2"})
      .operation(Event{0, 0, {}, "drop", R"({"rows":1})"})
      .operation(artifact)
      .operation(RunFile{0, 0, "notes.txt", "files/3", 3, "m3", "s3", "file"});
  const auto expect_all = [&] {
    const RankFile file = RankFile::open(path);
    const auto config = file.config();
    ASSERT_EQ(config.size(), 3u);
    EXPECT_EQ(config[0].key, "lr");
    EXPECT_EQ(config[0].json, "0.2");
    EXPECT_EQ(config[1].key, "seed");
    EXPECT_EQ(config[2].json, "\"x\"");
    const auto metrics = file.metric_definitions();
    ASSERT_EQ(metrics.size(), 1u);
    EXPECT_TRUE(metrics[0].hidden);
    EXPECT_TRUE(metrics[0].summary.empty());
    ASSERT_EQ(file.summary_overrides().size(), 1u);
    EXPECT_EQ(file.summary_overrides()[0].json, "2");
    const auto events = file.events();
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].kind, "barrier");
    EXPECT_EQ(events[0].sequence, 5u);
    EXPECT_EQ(events[0].step, 3);
    EXPECT_EQ(events[0].time_ns, test::kStartTimeNs + 5'000'000);
    EXPECT_EQ(events[1].kind, "drop");
    EXPECT_EQ(events[1].sequence, 13u);
    EXPECT_FALSE(events[1].step);
    const auto artifacts = file.artifacts();
    ASSERT_EQ(artifacts.size(), 2u);
    EXPECT_EQ(artifacts[0].name, "model");
    EXPECT_EQ(artifacts[0].aliases, std::vector<std::string>{"best"});
    EXPECT_EQ(artifacts[0].ttl_seconds, 0);
    EXPECT_EQ(artifacts[1].ttl_seconds, std::nullopt);
    ASSERT_EQ(artifacts[0].files.size(), 3u);
    EXPECT_EQ(artifacts[0].files[0].reference, "");
    EXPECT_EQ(artifacts[0].files[0].json, "{}");
    EXPECT_EQ(artifacts[0].files[2].reference, "s3://bucket/far");
    EXPECT_EQ(artifacts[0].files[2].json, R"({"etag":"e"})");
    EXPECT_EQ(artifacts[0].files[0].name, "b.pt");
    EXPECT_EQ(artifacts[0].files[1].size, 6u);
    EXPECT_EQ(artifacts[1].name, "data");
    EXPECT_EQ(artifacts[1].sequence, 14u);
    const auto files = file.files();
    ASSERT_EQ(files.size(), 2u) << "of one name the latest";
    EXPECT_EQ(files[0].name, "media/x.png");
    EXPECT_EQ(files[0].kind, "media");
    EXPECT_EQ(files[0].sequence, 8u);
    EXPECT_EQ(files[1].path, "files/3");
    EXPECT_EQ(files[1].size, 3u);
    EXPECT_EQ(files[1].sequence, 15u);
    EXPECT_TRUE(file.damage().empty());
  };
  expect_all();
  builder.commit_only();  // in both places now
  expect_all();
  builder.finish();
  expect_all();
}

TEST(RankFile, RowsAreSeenOnceWhateverWasSealedAndRemoved) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  std::uint64_t logged = 0;
  const auto log_some = [&] {
    for (int i = 0; i < 3; ++i) builder.row(static_cast<std::int64_t>(logged++), {{"loss", 1.0}});
  };
  const auto expect_logged = [&](const char* when) {
    const RankFile file = RankFile::open(path);
    EXPECT_EQ(rows_of(file).size(), logged) << when;
    EXPECT_EQ(file.info().rows, logged) << when;
    EXPECT_TRUE(file.damage().empty()) << when;
  };
  expect_logged("nothing");
  log_some();
  expect_logged("tail only");
  builder.next_segment();
  log_some();
  expect_logged("two segments");
  builder.commit_only();
  expect_logged("sealed, segments still there");
  log_some();
  expect_logged("old and new rows in one segment");
  builder.seal();
  expect_logged("sealed and removed");
  log_some();
  builder.finish();
  expect_logged("finished");
}

TEST(RankFile, ViewStaysWhatItWasWhileTheWriterGoesOn) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  builder.row(0, {{"loss", 1.0}}).operation(Event{0, 0, {}, "barrier", "{}"}).seal();
  builder.row(1, {{"loss", 2.0}});
  const RankFile file = RankFile::open(path);
  builder.row(2, {{"loss", 3.0}}).operation(Event{0, 0, {}, "barrier", "{}"});
  builder.finish();  // which an open view does not hold up
  EXPECT_EQ(rows_of(file).size(), 2u);
  EXPECT_EQ(file.events().size(), 1u);
  EXPECT_EQ(row_count(path), 3u);
}

TEST(RankFile, DeadWritersFileIsCompleteWithItsSideFiles) {
  const TempDir dir;
  const fs::path copy = dir / "copy";
  fs::create_directory(copy);
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  builder.row(0, {{"loss", 1.0}}).seal();
  builder.row(1, {{"loss", 2.0}});
  // What a kill leaves: the database, its -wal and the tail; -shm does not survive a copy to another machine.
  for (const char* name : {"rank-00000.db", "rank-00000.db-wal"}) fs::copy(dir / name, copy / name);
  fs::copy(builder.segment(), copy / builder.segment().filename());
  EXPECT_GT(fs::file_size(copy / "rank-00000.db-wal"), 0u) << "or the test shows nothing";
  EXPECT_EQ(row_count(copy / "rank-00000.db"), 2u);
}

TEST(RankFile, FinishedDatabaseAloneIsComplete) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  for (int i = 0; i < 100; ++i) builder.row(i, {{"loss", 1.0 / (i + 1)}});
  builder.finish();
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir.path())) names.insert(entry.path().filename());
  EXPECT_EQ(names, std::set<std::string>{"rank-00000.db"});
  const TempDir other;
  fs::copy(dir / "rank-00000.db", other / "renamed.db");
  EXPECT_EQ(row_count(other / "renamed.db"), 100u);
}

TEST(RankFile, TailOfAnotherLaunchIsLeftOutAndNamed) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  builder.row(0, {{"loss", 1.0}});
  std::string foreign = encode_tail_header("another launch", 0);
  const TailField field{0, 9.0};
  append_key_record(foreign, 0, KeyPath::flat("loss"));
  append_row_record(foreign, 50, 50, 50, {&field, 1});
  test::write_file(tail_segment_path(path, 7), foreign);
  const RankFile file = RankFile::open(path);
  EXPECT_EQ(rows_of(file).size(), 1u);
  ASSERT_EQ(file.damage().size(), 1u);
  EXPECT_NE(file.damage()[0].place.find("rank-00000.tail.7"), std::string::npos);
}

TEST(RankFile, DamagedHeaderOfASegmentIsNamedAndItsRowsAreRead) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  builder.row(0, {{"loss", 1.0}}).row(1, {{"loss", 2.0}});
  std::string segment = test::read_file(builder.segment());
  constexpr std::size_t kLength = 16;
  segment[kLength + 1] = '\x40';
  test::write_file(builder.segment(), segment);
  const RankFile file = RankFile::open(builder.path());
  EXPECT_EQ(rows_of(file).size(), 2u);
  ASSERT_EQ(file.damage().size(), 1u);
  EXPECT_NE(file.damage()[0].place.find("rank-00000.tail.0"), std::string::npos);
}

TEST(RankFile, WhatOnlyHasASegmentsNameIsNamedAndTheRestIsRead) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  builder.row(0, {{"loss", 1.0}});
  ASSERT_EQ(::mkfifo(tail_segment_path(path, 7).c_str(), 0600), 0);
  fs::create_directory(tail_segment_path(path, 8));
  const RankFile file = RankFile::open(path);
  EXPECT_EQ(rows_of(file).size(), 1u);
  ASSERT_EQ(file.damage().size(), 2u);
  EXPECT_NE(file.damage()[0].place.find("rank-00000.tail.7"), std::string::npos);
  EXPECT_NE(file.damage()[1].place.find("rank-00000.tail.8"), std::string::npos);
}

TEST(RankFile, KeyNumbersWithGapsDoNotAddUpToAllMemory) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  builder.row(0, {{"loss", 1.0}});
  std::string records = encode_tail_header(identity_of_rank(0).launch_token, 0);
  constexpr KeyId kGap = KeyId{1} << 19;
  for (KeyId id = kGap; id < 100 * kGap; id += kGap) append_key_record(records, id, KeyPath::flat("far"));
  test::write_file(tail_segment_path(path, 7), records);
  const RankFile file = RankFile::open(path);
  EXPECT_EQ(rows_of(file).size(), 1u);
  EXPECT_LE(file.keys().size(), 3u * kGap);
  EXPECT_FALSE(file.damage().empty());
}

TEST(RankFile, TornTailKeepsEarlierRowsAndIsNoDamage) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  builder.row(0, {{"loss", 1.0}}).seal();
  builder.row(1, {{"loss", 1.0}}).row(2, {{"loss", 1.0}});
  const std::string whole = test::read_file(builder.segment());
  const std::size_t end_of_last = whole.find_last_not_of('\0') + 1;  // without padding
  for (std::size_t length = 0; length < end_of_last; ++length) {
    test::write_file(builder.segment(), std::string_view(whole).substr(0, length));
    const RankFile file = RankFile::open(path);
    const std::size_t rows = rows_of(file).size();
    EXPECT_GE(rows, 1u);
    EXPECT_LE(rows, 2u);
    EXPECT_TRUE(file.damage().empty()) << "cut at " << length;
  }
}

TEST(RankFile, DamageInTheTailIsNamedAndCostsOneRow) {
  const TempDir dir;
  const fs::path path = dir / "rank-00000.db";
  RankFileBuilder builder(path, identity_of_rank(0));
  builder.row(0, {{"loss", 1.0}});
  const std::size_t begin = fs::file_size(builder.segment());
  builder.row(1, {{"loss", 1.0}});
  const std::string two = test::read_file(builder.segment());
  const std::size_t end = two.find_last_not_of('\0') + 1;  // without padding
  builder.row(2, {{"loss", 1.0}});
  const std::string whole = test::read_file(builder.segment());
  for (std::size_t i = begin; i < end; ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    test::write_file(builder.segment(), damaged);
    const RankFile file = RankFile::open(path);
    EXPECT_EQ(rows_of(file).size(), 2u);
    ASSERT_EQ(file.damage().size(), 1u) << i;
    EXPECT_EQ(file.damage()[0].place, "tail segment rank-00000.tail.0 at byte " + std::to_string(begin));
  }
}

TEST(RankFile, OtherFilesAreRefusedByName) {
  const TempDir dir;
  EXPECT_EQ(error_of(dir / "absent.db").code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of(dir.path()).code(), ErrorCode::kNotOurs);
  test::write_file(dir / "text.db", std::string(5000, 'x'));
  EXPECT_EQ(error_of(dir / "text.db").code(), ErrorCode::kNotOurs);
  EXPECT_NE(std::string(error_of(dir / "text.db").what()).find("text.db"), std::string::npos);
  test::write_file(dir / "short.db", "x");
  EXPECT_EQ(error_of(dir / "short.db").code(), ErrorCode::kNotOurs);
  test::write_file(dir / "empty.db", "");
  EXPECT_EQ(error_of(dir / "empty.db").code(), ErrorCode::kDamaged);
}

}  // namespace
}  // namespace ranklog
