// check, --repair, snapshot and compact: damage named, copies that are whole.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plain_table.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog_program.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::holds;
using test::lines_in;
using test::now_ns;
using test::Ran;
using test::RankFileBuilder;
using test::RanklogProgram;

TEST_F(RanklogProgram, CheckReadsEverythingAndNamesWhatIsDamaged) {
  write("whole", {0, 1}, 2);
  write("hurt", {0}, 1);
  const Ran whole = run({"check", "-e", "whole"});
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(whole.out, "2 files checked, 0 damaged\n");
  test::PlainDatabase raw(path_of(identity("hurt", 0, 1)).string());
  raw.execute("UPDATE chunk SET data = x'00'");
  const Ran all = run({"check"});
  EXPECT_EQ(all.status, 5);
  EXPECT_TRUE(holds(all.out, "rank-00000.db: 0 of 20 rows can be read")) << all.out;
  EXPECT_TRUE(holds(all.out, "chunk 1: ")) << all.out;
  EXPECT_TRUE(holds(all.out, "3 files checked, 1 damaged")) << all.out;
  const json document = json::parse(run({"check", "--json", "-e", "hurt"}).out);
  EXPECT_EQ(document["files"][0]["rows"], 20);
  EXPECT_EQ(document["files"][0]["readable_rows"], 0);
  EXPECT_EQ(document["files"][0]["damage"].size(), 1u);
}

// The number of unused bytes in a page: nothing that is read depends on it.
TEST_F(RanklogProgram, CheckNamesDamageThatOnlySqliteSees) {
  write("hurt", {0}, 1);
  const fs::path path = path_of(identity("hurt", 0, 1));
  std::string bytes = test::read_file(path);
  constexpr std::size_t kPage = 512;
  constexpr std::size_t kFragmentedBytes = 7;
  bytes[kPage + kFragmentedBytes] = static_cast<char>(bytes[kPage + kFragmentedBytes] ^ 1);
  test::write_file(path, bytes);
  const Ran ran = run({"check"});
  EXPECT_EQ(ran.status, 5) << ran.out;
  EXPECT_TRUE(holds(ran.out, "20 of 20 rows can be read")) << ran.out;
  EXPECT_TRUE(holds(ran.out, "database: ")) << ran.out;
}

TEST_F(RanklogProgram, CheckReadsLiveFilesToo) {
  write("live", {0}, 1, std::nullopt);
  const Ran ran = run({"check"});
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_EQ(ran.out, "1 file checked, 0 damaged\n");
}

TEST_F(RanklogProgram, RepairSalvagesTheDamagedExperimentElsewhere) {
  write("whole", {0}, 1);
  const Identity who = identity("hurt", 0, 1);
  {
    RankFileBuilder file(path_of(who), who, now_ns());
    for (int step = 0; step < 10; ++step) file.row(step, {{"loss", 1.0 / (1 + step)}}).seal();
    file.finish();
  }
  test::PlainDatabase(path_of(who).string()).execute("UPDATE chunk SET data = x'00' WHERE id = 3");
  const std::string before = test::read_file(path_of(who));
  const auto salvaged = (dir_ / "salvaged").string();
  const Ran ran = run({"check", "--repair", salvaged});
  EXPECT_EQ(ran.status, 5);
  EXPECT_TRUE(holds(ran.out, "1 rank file, 9 rows; 1 row lost")) << ran.out;
  EXPECT_EQ(test::read_file(path_of(who)), before);
  EXPECT_EQ(run({"check", salvaged}).out, "1 file checked, 0 damaged\n");
  const Ran points = run({"query", "--csv", "SELECT count(*) FROM points", salvaged});
  EXPECT_EQ(points.status, 0) << points.err;
  EXPECT_TRUE(holds(points.out, "9")) << points.out;
  const Ran again = run({"check", "--repair", salvaged});
  EXPECT_EQ(again.status, 1) << "what is there already stays";
  EXPECT_TRUE(holds(again.err, "is not empty")) << again.err;
}

TEST_F(RanklogProgram, RepairCopiesTheOthersOfAFileThatCannotBeRead) {
  write("e", {0, 1}, 2);
  fs::resize_file(path_of(identity("e", 1, 2)), 700);
  const Ran ran = run({"check", "--repair", "salvaged"});
  EXPECT_EQ(ran.status, 5);
  EXPECT_TRUE(holds(ran.out, "1 file checked, 0 damaged; not read: 1 file")) << ran.out;
  EXPECT_TRUE(holds(ran.out, "salvaged to")) << ran.out;
  EXPECT_TRUE(holds(ran.err, "rank-00001.db")) << ran.err;
  EXPECT_TRUE(fs::exists(dir_ / "salvaged/digits/e/rank-00000.db"));
}

TEST_F(RanklogProgram, RepairSaysSoWhenThereIsNothingToCopy) {
  write("e", {0}, 1);
  EXPECT_TRUE(holds(run({"check", "--repair", "out"}).out, "nothing is damaged: nothing was copied"));
  fs::resize_file(path_of(identity("e", 0, 1)), 700);
  EXPECT_TRUE(holds(run({"check", "--repair", "out"}).out, "nothing could be salvaged: nothing was copied"));
}

TEST_F(RanklogProgram, CheckTellsOfRanksThatAreNotThere) {
  write("e", {1, 2}, 4);
  const Ran ran = run({"check"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(holds(ran.out, "digits/e: no file of 2 ranks of 4")) << ran.out;
}

TEST_F(RanklogProgram, SnapshotOfALiveExperimentIsWholeByItself) {
  const Identity who = identity("live", 0, 1);
  RankFileBuilder file(path_of(who), who, now_ns());
  file.row(0, {{"loss", 1.0}}).seal().row(1, {{"loss", 0.5}});
  const auto folder = path_of(who).parent_path();
  std::filesystem::create_directory(folder / "files");
  test::write_file(folder / "files" / "abc", "picture");
  file.operation(RunFile{0, 0, "media/images/x.png", "files/abc", 7, md5_hex("picture"),
                         sha256_hex("picture"), "media"});
  file.operation(RunFile{0, 0, "media/images/gone.png", "files/gone", 7, "m", "s", "media"});
  const auto output = dir_ / "snapshot";
  const Ran ran = run({"snapshot", "-o", output.string()});
  EXPECT_EQ(ran.status, 5) << "one file is missing";
  EXPECT_TRUE(holds(ran.err, "files/gone")) << ran.err;
  EXPECT_TRUE(holds(ran.out, "1 rank file, 2 rows, 1 captured file")) << ran.out;
  const auto copy = output / folder.lexically_relative(dir_ / "ranklog");
  EXPECT_EQ(test::read_file(copy / "files" / "abc"), "picture");
  EXPECT_FALSE(std::filesystem::exists(copy / "rank-00000.tail.0"));
  EXPECT_EQ(RankFile::open(copy / "rank-00000.db").info().rows, 2u);
  const Ran check = run({"check", output.string()});
  EXPECT_TRUE(holds(check.out, "1 file checked, 0 damaged; 2 captured files, 1 damaged")) << check.out;
  EXPECT_EQ(run({"check", "--no-files", output.string()}).status, 0);
}

TEST_F(RanklogProgram, OneBadCapturedFileStopsNoSnapshotAndEveryNodesFolderIsTried) {
  for (const int rank : {0, 1}) {
    const Identity who = identity("nodes", rank, 2);
    const fs::path path = dir_ / ("node" + std::to_string(rank)) / "digits/nodes" / "rank-00000.db";
    RankFileBuilder file(path.parent_path() / ("rank-0000" + std::to_string(rank) + ".db"), who, now_ns());
    file.row(0, {{"loss", 1.0}});
    file.operation(RunFile{0, 0, "a", "files/folder", 1, "m", "s", "file"});
    file.operation(RunFile{0, 0, "b", "files/of-node-1", 1, "m", "s", "file"});
    file.finish();
  }
  fs::create_directories(dir_ / "node0/digits/nodes/files/folder");
  fs::create_directories(dir_ / "node1/digits/nodes/files");
  test::write_file(dir_ / "node1/digits/nodes/files/of-node-1", "b");
  const Ran ran = run({"snapshot", "-o", "out", "node0", "node1"});
  EXPECT_EQ(ran.status, 5) << ran.err;
  EXPECT_TRUE(holds(ran.out, "2 rank files, 2 rows, 1 captured file")) << ran.out;
  EXPECT_TRUE(holds(ran.err, "files/folder' is no regular file")) << ran.err;
  EXPECT_EQ(lines_in(ran.err), 1) << ran.err;
  EXPECT_EQ(test::read_file(dir_ / "out/digits/nodes/files/of-node-1"), "b");
}

// --keep removes checkpoints, and says so in the log.
TEST_F(RanklogProgram, WhatWasRemovedOnPurposeIsMissedByNeitherSnapshotNorCheck) {
  const Identity who = identity("kept", 0, 1);
  RankFileBuilder file(path_of(who), who, now_ns());
  file.row(0, {{"loss", 1.0}});
  Artifact model;
  model.name = "m";
  model.type = "model";
  model.metadata_json = "{}";
  model.files = {{"model.pt", "checkpoints/step-1/model.pt", 7, "m", "s"}};
  file.operation(model);
  EXPECT_EQ(run({"snapshot", "-o", "before"}).status, 5);
  EXPECT_EQ(run({"check"}).status, 5);
  file.operation(Event{0, 0, std::nullopt, "checkpoint-removed", R"({"path":"checkpoints/step-1"})"});
  for (const Ran& ran : {run({"snapshot", "-o", "after"}), run({"check"})}) {
    EXPECT_EQ(ran.status, 0) << ran.err << ran.out;
    EXPECT_EQ(ran.err, "");
  }
}

TEST_F(RanklogProgram, CheckVerifiesTheCapturedFilesToo) {
  const Identity who = identity("captured", 0, 1);
  RankFileBuilder file(path_of(who), who, now_ns());
  file.row(0, {{"loss", 1.0}});
  const fs::path captured = path_of(who).parent_path() / "files" / "a";
  fs::create_directories(captured.parent_path());
  test::write_file(captured, "weights");
  const std::string md5 = md5_hex("weights"), sha256 = sha256_hex("weights");
  file.operation(RunFile{0, 0, "w.bin", "files/a", 7, md5, sha256, "file"}).finish();
  EXPECT_EQ(run({"check"}).status, 0);
  test::write_file(captured, "weighTs");
  const Ran ran = run({"check"});
  EXPECT_EQ(ran.status, 5);
  EXPECT_TRUE(holds(ran.out, "files/a: its bytes are not those that were logged")) << ran.out;
  EXPECT_EQ(run({"check", "--no-files"}).status, 0);
  test::write_file(captured, "short");
  EXPECT_TRUE(holds(run({"check"}).out, "files/a: it has 5 bytes and should have 7"));
  fs::remove(captured);
  EXPECT_TRUE(holds(run({"check"}).out, "files/a: it is missing"));
}

TEST_F(RanklogProgram, CopyThatWasKilledIsPassedOver) {
  write("e", {0, 1}, 2);
  fs::create_directories(dir_ / "out/digits");
  fs::create_directories(dir_ / "out/digits/.e.partial-1");  // of a copy that was killed
  fs::copy(path_of(identity("e", 0, 2)), dir_ / "out/digits/.e.partial-1/rank-00000.db");
  EXPECT_EQ(run({"ls", "out"}).status, 1) << "it is passed over";
  EXPECT_EQ(run({"snapshot", "-o", "out"}).status, 0);
  EXPECT_TRUE(fs::exists(dir_ / "out/digits/e/rank-00001.db"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "out/digits"), {}), 2);
}

TEST_F(RanklogProgram, CopyOfAFileWithAnyNameIsFoundAgain) {
  write("e", {0}, 1);
  fs::copy(path_of(identity("e", 0, 1)), dir_ / "renamed.db");
  EXPECT_EQ(run({"snapshot", "-o", "out", "renamed.db"}).status, 0);
  EXPECT_TRUE(fs::exists(dir_ / "out/digits/e/rank-00000.db"));
}

TEST_F(RanklogProgram, RepairSaysWhatItLeavesOut) {
  const Identity who = identity("hurt", 0, 1);
  {
    RankFileBuilder file(path_of(who), who, now_ns());
    file.row(0, {{"loss", 1.0}}).seal().row(1, {{"loss", 1.0}});
    file.operation(RunFile{0, 0, "media/images/gone.png", "files/gone", 7, "m", "s", "media"});
    file.finish();
  }
  test::PlainDatabase(path_of(who).string()).execute("UPDATE chunk SET data = x'00' WHERE id = 1");
  const Ran ran = run({"check", "--repair", "salvaged"});
  EXPECT_EQ(ran.status, 5) << ran.err;
  EXPECT_TRUE(holds(ran.err, "files/gone")) << ran.err;
  EXPECT_TRUE(holds(ran.err, "chunk 1")) << ran.err;
}

TEST_F(RanklogProgram, SnapshotNamesWhatOnlyALaterVersionKnows) {
  write("later", {0}, 1);
  test::PlainDatabase(path_of(identity("later", 0, 1)).string()).execute("CREATE TABLE novelty(a)");
  const Ran ran = run({"snapshot", "-o", "out"});
  EXPECT_EQ(ran.status, 5) << "as for a file of a later version";
  EXPECT_TRUE(holds(ran.err, "rank-00000.db: table novelty: this version of ranklog does not know it"))
      << ran.err;
  EXPECT_TRUE(fs::exists(dir_ / "out/digits/later/rank-00000.db"));
}

TEST_F(RanklogProgram, CompactMergesTheChunksOfFinishedFilesAndLeavesLiveOnesAlone) {
  const Identity who = identity("scattered", 0, 1);
  RankFileBuilder file(path_of(who), who, now_ns());
  for (int step = 0; step < 100; ++step) file.row(step, {{"loss", 1.0 / (1 + step)}}).seal();
  file.finish();
  write("live", {0}, 1, std::nullopt);
  const std::string rows = "SELECT count(*), sum(value) FROM points WHERE experiment = 'scattered'";
  const Ran before = run({"query", "--csv", rows});
  const Ran ran = run({"compact"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(holds(ran.out, "1 file: 100 chunks are now 1,")) << ran.out;
  EXPECT_TRUE(holds(ran.out, "1 left alone")) << ran.out;
  EXPECT_EQ(run({"query", "--csv", rows}).out, before.out);
  EXPECT_EQ(run({"check"}).status, 0);
}

}  // namespace
}  // namespace ranklog
