#include "upload_state.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

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
  return {"r1", "recipe", "acme", "llm", "id=", "h", "s", "end", "print"};
}

TEST_F(UploadStateTest, WhatIsSavedIsThereWhenOpenedAgain) {
  {
    UploadState state(path(), kDestination, false);
    state.save_run(record(), {{"config.yaml", "md5"}});
    state.save_artifact("client", "model", "artifact=");
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
