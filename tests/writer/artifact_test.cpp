#include <gtest/gtest.h>

#include "helpers.hpp"

namespace ranklog {
namespace {

using test::list_folder;
using test::write_file;

// Of "hello\n", by md5sum and sha256sum.
constexpr const char* kMd5 = "b1946ac92492d2347c6235b4d2611184";
constexpr const char* kSha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

class ArtifactTest : public ::testing::Test {
 protected:
  ErrorCode refused(ArtifactBuilder builder) {
    try {
      builder.commit();
    } catch (const Error& error) {
      message_ = error.what();
      return error.code();
    }
    ADD_FAILURE() << "was accepted";
    return ErrorCode::kInterrupted;
  }

  const test::ScopedEnvironment environment_{{}};
  const test::TempDir dir_;
  Writer log_ = Writer::open(test::options_in(dir_ / "logs"));
  std::string message_;
};

TEST_F(ArtifactTest, FileOutsideIsCopiedAndEachContentKeptOnce) {
  write_file(dir_ / "model.pt", "hello\n");
  write_file(dir_ / "twin.pt", "hello\n");
  log_.artifact("model", "model")
      .add_file(dir_ / "model.pt")
      .add_file(dir_ / "twin.pt", "sub/twin.pt")
      .alias("best")
      .alias("latest")
      .tag("small")
      .description("a model")
      .metadata_json(R"({"accuracy":0.97})")
      .step(12)
      .ttl(std::chrono::hours(1))
      .commit();
  // What happens to the source later changes nothing.
  write_file(dir_ / "twin.pt", "changed");
  std::filesystem::remove(dir_ / "model.pt");
  EXPECT_TRUE(log_.flush().durable);

  EXPECT_EQ(list_folder(log_.folder() / "files"), (std::vector<std::string>{kSha256}));
  EXPECT_EQ(test::read_file(log_.folder() / "files" / kSha256), "hello\n");
  log_.finish();
  const auto artifacts = RankFile::open(log_.path()).artifacts();
  ASSERT_EQ(artifacts.size(), 1U);
  const Artifact& artifact = artifacts[0];
  EXPECT_EQ(artifact.name, "model");
  EXPECT_EQ(artifact.type, "model");
  EXPECT_EQ(artifact.description, "a model");
  EXPECT_EQ(artifact.step, 12);
  EXPECT_EQ(artifact.ttl_seconds, 3600);
  EXPECT_EQ(artifact.aliases, (std::vector<std::string>{"best"}));
  EXPECT_EQ(artifact.tags, (std::vector<std::string>{"small"}));
  EXPECT_EQ(artifact.metadata_json, R"({"accuracy":0.97})");
  ASSERT_EQ(artifact.files.size(), 2U);
  EXPECT_EQ(artifact.files[0].name, "model.pt");
  EXPECT_EQ(artifact.files[1].name, "sub/twin.pt");
  for (const auto& file : artifact.files) {
    EXPECT_EQ(file.path, std::string("files/") + kSha256);
    EXPECT_EQ(file.size, 6U);
    EXPECT_EQ(file.md5, kMd5);
    EXPECT_EQ(file.sha256, kSha256);
  }
}

TEST_F(ArtifactTest, FileInsideTheExperimentIsRecordedWhereItIs) {
  const auto checkpoint = log_.folder() / "checkpoints" / "step-00000001";
  std::filesystem::create_directories(checkpoint);
  write_file(checkpoint / "model.pt", "hello\n");
  log_.artifact("model", "model").add_file(checkpoint / ".." / "step-00000001" / "model.pt").commit();
  log_.artifact("known", "model")
      .add_digested_file(checkpoint / "model.pt", "m.pt", 6, kMd5, kSha256)
      .commit();
  EXPECT_TRUE(log_.flush().durable);
  const auto artifacts = RankFile::open(log_.path()).artifacts();
  ASSERT_EQ(artifacts.size(), 2U);
  EXPECT_EQ(artifacts[1].name, "known") << "in the order of commit()";
  for (const auto& artifact : artifacts) {
    EXPECT_EQ(artifact.files.at(0).path, "checkpoints/step-00000001/model.pt");
    EXPECT_EQ(artifact.files.at(0).md5, kMd5);
  }
  EXPECT_FALSE(std::filesystem::exists(log_.folder() / "files"));
}

TEST_F(ArtifactTest, WhatCannotBeRecordedIsRefusedWithTheReason) {
  write_file(dir_ / "f", "x");
  const auto draft = [&] { return log_.artifact("model", "model").add_file(dir_ / "f"); };
  EXPECT_EQ(refused(log_.artifact("model", "model")), ErrorCode::kUsage);
  EXPECT_EQ(refused(log_.artifact("", "model").add_file(dir_ / "f")), ErrorCode::kUsage);
  EXPECT_EQ(refused(draft().metadata_json("[1]")), ErrorCode::kUsage);
  EXPECT_EQ(refused(draft().metadata_json(R"({"loss":NaN})")), ErrorCode::kUsage);
  EXPECT_NE(message_.find("NaN"), std::string::npos) << message_;
  EXPECT_EQ(refused(draft().add_file(dir_ / "f")), ErrorCode::kUsage);
  for (const char* name : {"/abs", "../up", "a//b", "a/./b", "a/.."}) {
    EXPECT_EQ(refused(log_.artifact("model", "model").add_file(dir_ / "f", name)), ErrorCode::kUsage) << name;
  }
  EXPECT_EQ(refused(log_.artifact("model", "model").add_file(dir_ / "missing")), ErrorCode::kNotFound);
  EXPECT_NE(message_.find("missing"), std::string::npos) << message_;
  EXPECT_EQ(refused(log_.artifact("model", "model").add_file(dir_.path(), "folder")), ErrorCode::kUsage);
  EXPECT_EQ(refused(log_.artifact("model", "model").add_digested_file(dir_ / "f", "f", 1, kMd5, kSha256)),
            ErrorCode::kUsage);
  EXPECT_EQ(refused(log_.artifact("model", "model").add_reference("no url", "x")), ErrorCode::kUsage);
  EXPECT_EQ(refused(draft().ttl(std::chrono::seconds(-1))), ErrorCode::kUsage);
  EXPECT_TRUE(log_.flush().durable);
  EXPECT_TRUE(RankFile::open(log_.path()).artifacts().empty());
  EXPECT_TRUE(!std::filesystem::exists(log_.folder() / "files") ||
              list_folder(log_.folder() / "files").empty())
      << "nothing is left of what was refused";
}

TEST_F(ArtifactTest, ReferencesStayWhereTheyAre) {
  log_.artifact("data", "dataset")
      .add_reference("s3://bucket/x.parquet", "data/x.parquet", 99, R"({"etag":"abc"})")
      .commit();
  log_.use_artifact("team/project/base:v3", "model");
  log_.link_artifact("data", "team/registry/data", {"production"});
  const auto file = RankFile::open(log_.path());
  const auto artifacts = file.artifacts();
  ASSERT_EQ(artifacts.size(), 1U);
  EXPECT_EQ(artifacts[0].files.at(0).reference, "s3://bucket/x.parquet");
  EXPECT_EQ(artifacts[0].files.at(0).path, "");
  EXPECT_EQ(artifacts[0].files.at(0).size, 99U);
  const auto events = file.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].json, R"({"artifact":"team/project/base:v3","type":"model"})");
  EXPECT_EQ(events[1].kind, "artifact_link");
}

TEST_F(ArtifactTest, LinkedFileTakesNoSecondCopy) {
  write_file(dir_ / "big.pt", std::string(100'000, 'x'));
  log_.artifact("model", "model").add_file(dir_ / "big.pt", {}, Capture::kLink).commit();
  EXPECT_TRUE(log_.flush().durable);
  EXPECT_EQ(std::filesystem::hard_link_count(dir_ / "big.pt"), 2U);
  std::filesystem::remove(dir_ / "big.pt");
  EXPECT_EQ(
      std::filesystem::file_size(log_.folder() / RankFile::open(log_.path()).artifacts()[0].files[0].path),
      100'000U);
}

TEST_F(ArtifactTest, CommittingTwiceOrAfterTheEndIsRefused) {
  write_file(dir_ / "f", "x");
  auto draft = log_.artifact("model", "model").add_file(dir_ / "f");
  draft.commit();
  EXPECT_EQ(refused(draft), ErrorCode::kUsage);
  log_.finish();
  EXPECT_EQ(refused(log_.artifact("model", "model").add_file(dir_ / "f")), ErrorCode::kUsage);
  EXPECT_EQ(RankFile::open(log_.path()).artifacts().size(), 1U);
}

}  // namespace
}  // namespace ranklog
