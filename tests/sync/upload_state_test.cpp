#include "upload_state.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>

#include "ranklog/schema/error.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::sync {
namespace {

using ranklog::test::read_file;
using ranklog::test::TempDir;
using ranklog::test::write_file;

const Destination kDestination{"https://api.example", "acme", "llm"};

class UploadStateTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return state_path(dir_ / "state", kDestination); }
  UploadState open(bool default_entity = false) const { return {path(), kDestination, default_entity}; }

  TempDir dir_;
};

RunRecord record() {
  return {"r1", "recipe", "acme", "llm", "id=", "{}", "c", "s", "end", "print"};
}

TEST_F(UploadStateTest, WhatIsSavedIsThereWhenOpenedAgain) {
  {
    UploadState state(path(), kDestination, false);
    state.save_run(record(), {{"config.yaml", "md5"}});
    state.save_artifact("client", "model", "artifact=", "described");
    state.leave_out("r1", std::nullopt, 7);
    state.save_generation("r1", 3);
    state.save_link("client", "r1");
  }
  UploadState state(path(), kDestination, false);
  ASSERT_TRUE(state.run("r1"));
  EXPECT_EQ(state.run("r1")->storage_id, "id=");
  EXPECT_EQ(state.run("r1")->finish, "end");
  EXPECT_FALSE(state.run("r2"));
  EXPECT_EQ(state.file_md5("r1", "config.yaml"), "md5");
  EXPECT_EQ(state.file_md5("r1", "other"), "");
  EXPECT_EQ(state.artifact_id("client"), "artifact=");
  EXPECT_EQ(state.artifact_description("client"), "described");
  EXPECT_EQ(state.left_out("r1"), std::set<std::int64_t>({7}));
  EXPECT_EQ(state.generation("r1"), 3);
  EXPECT_EQ(state.generation("r2"), 1);
  EXPECT_EQ(known_generation(path(), "r1"), 3);
  EXPECT_EQ(known_generation(dir_ / "missing.db", "r1"), 1);
  EXPECT_TRUE(state.is_linked("client", "r1"));
  EXPECT_FALSE(state.is_linked("client", "r2"));
}

TEST_F(UploadStateTest, BatchesComeByFirstLineAndEndTheRunsEnd) {
  UploadState state(path(), kDestination, false);
  state.save_run(record());
  state.save_batch("r1", {10, 5, "b", false});
  state.save_batch("r1", {0, 10, "a", true});
  const auto batches = state.batches("r1");
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0].lines, 10U);
  EXPECT_TRUE(batches[0].confirmed);
  EXPECT_FALSE(batches[1].confirmed);
  EXPECT_EQ(state.run("r1")->finish, "");
  EXPECT_EQ(state.run("r1")->done, "");
}

TEST_F(UploadStateTest, OnlyUnconfirmedBatchesAreDropped) {
  UploadState state(path(), kDestination, false);
  state.save_batch("r1", {0, 10, "a", true});
  state.save_batch("r1", {10, 5, "b", false});
  state.drop_batch("r1", 10);
  state.drop_batch("r1", 0);
  EXPECT_EQ(state.batches("r1").size(), 1U);
}

TEST_F(UploadStateTest, SecondOpenerIsToldWhoTheFirstIs) {
  const UploadState first(path(), kDestination, false);
  try {
    const UploadState second(path(), kDestination, false);
    FAIL() << "both opened it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBusy);
    EXPECT_NE(std::string(error.what()).find("process " + std::to_string(getpid())), std::string::npos);
  }
}

TEST_F(UploadStateTest, DamagedFileIsSetAside) {
  std::filesystem::create_directories(path().parent_path());
  write_file(path(), std::string(4096, 'x'));
  UploadState state(path(), kDestination, false);
  EXPECT_FALSE(state.run("r1"));
  EXPECT_EQ(read_file(path().string() + ".damaged"), std::string(4096, 'x'));
}

// Damage in the middle, which opening alone does not come across.
TEST_F(UploadStateTest, DamagedPageIsFoundBeforeItIsRelied) {
  {
    UploadState state = open();
    for (std::uint64_t line = 0; line < 2'000; ++line) {
      state.save_batch("r1", {line, 1, std::string(64, 'a'), true});
    }
  }
  std::string bytes = read_file(path());
  ASSERT_GT(bytes.size(), 100'000U);
  std::fill(bytes.end() - 40'000, bytes.end() - 20'000, 'x');
  write_file(path(), bytes);
  UploadState state = open();
  EXPECT_TRUE(state.batches("r1").empty());
  EXPECT_EQ(read_file(path().string() + ".damaged"), bytes);
}

TEST_F(UploadStateTest, DamagedFileThatCannotBeSetAsideIsNamed) {
  std::filesystem::create_directories(path().parent_path());
  write_file(path(), std::string(4096, 'x'));
  std::filesystem::create_directories(path().string() + ".damaged/in-the-way");
  try {
    const UploadState state(path(), kDestination, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("--state-dir"), std::string::npos) << error.what();
  }
}

TEST_F(UploadStateTest, StateOfFormat1IsTakenOver) {
  std::filesystem::create_directories(path().parent_path());
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, R"(
      CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
      INSERT INTO meta VALUES('format', '1');
      CREATE TABLE runs(run_id TEXT PRIMARY KEY, recipe TEXT NOT NULL, entity TEXT NOT NULL, project TEXT NOT NULL,
        storage_id TEXT NOT NULL, header_hash TEXT NOT NULL, summary_hash TEXT NOT NULL, finish TEXT NOT NULL,
        done TEXT NOT NULL) WITHOUT ROWID;
      INSERT INTO runs VALUES('r1', 'recipe', 'acme', 'llm', 'id=', 'hash', 's', 'end', 'print');
      CREATE TABLE artifacts(client_id TEXT PRIMARY KEY, name TEXT NOT NULL, artifact_id TEXT NOT NULL) WITHOUT ROWID;
      INSERT INTO artifacts VALUES('client', 'model', 'artifact=');)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(raw);
  for (int opened = 0; opened < 2; ++opened) {
    UploadState state = open();
    ASSERT_TRUE(state.run("r1"));
    EXPECT_EQ(state.run("r1")->header, "");
    EXPECT_EQ(state.run("r1")->finish, "end");
    EXPECT_EQ(state.artifact_id("client"), "artifact=");
    EXPECT_EQ(state.artifact_description("client"), "");
  }
}

TEST_F(UploadStateTest, OfSeveralFoldersTheOneWithMostConfirmedIsFound) {
  const std::vector<std::filesystem::path> folders = {dir_ / "a", dir_ / "b", dir_ / "c"};
  EXPECT_EQ(find_state_folder(folders, kDestination), folders[0]);
  {
    UploadState b(state_path(folders[1], kDestination), kDestination, false);
    UploadState c(state_path(folders[2], kDestination), kDestination, false);
    EXPECT_EQ(find_state_folder(folders, kDestination), folders[1]);
    b.save_batch("r1", {0, 5, "x", true});
    c.save_batch("r1", {0, 9, "x", true});
    c.save_batch("r1", {9, 9, "x", false});
  }
  EXPECT_EQ(find_state_folder(folders, kDestination), folders[2]);
}

TEST_F(UploadStateTest, FolderThatCannotBeMadeNamesTheWayOut) {
  write_file(dir_ / "state", "a file");
  try {
    const UploadState state(path(), kDestination, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("--state-dir"), std::string::npos);
  }
}

TEST_F(UploadStateTest, DefaultEntityIsRememberedPerServerAndProject) {
  EXPECT_EQ(known_default_entity(dir_ / "state", kDestination.server, "llm"), "");
  {
    UploadState state(path(), kDestination, true);
  }
  EXPECT_EQ(known_default_entity(dir_ / "state", kDestination.server, "llm"), "acme");
  EXPECT_EQ(known_default_entity(dir_ / "state", kDestination.server, "other"), "");
  EXPECT_EQ(known_default_entity(dir_ / "state", "https://elsewhere", "llm"), "");
}

TEST_F(UploadStateTest, DoneIsReadWithoutTheLock) {
  EXPECT_EQ(done_fingerprint(path(), "r1"), "");
  UploadState state(path(), kDestination, false);
  state.save_run(record());
  EXPECT_EQ(done_fingerprint(path(), "r1"), "print");
  EXPECT_EQ(done_fingerprint(path(), "r2"), "");
}

TEST_F(UploadStateTest, DestinationsHaveFilesOfTheirOwn) {
  Destination other = kDestination;
  other.entity = "rival";
  EXPECT_NE(state_path("d", kDestination), state_path("d", other));
}

}  // namespace
}  // namespace ranklog::sync
