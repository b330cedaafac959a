// Media, histograms, files of the run, and rewinding.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "helpers.hpp"
#include "ranklog/schema/digest.hpp"

namespace ranklog {
namespace {

using nlohmann::json;
using test::write_file;

class MediaTest : public ::testing::Test {
 protected:
  [[nodiscard]] json value_of(const std::string& key) {
    EXPECT_TRUE(log_.flush().durable);
    for (const auto& row : test::read_rows(log_.path())) {
      const auto found = row.values.find(key);
      if (found != row.values.end()) return json::parse(found->second.view().text());
    }
    ADD_FAILURE() << "there is no " << key;
    return {};
  }

  const test::ScopedEnvironment environment_{{}};
  const test::TempDir dir_;
  Writer log_ = Writer::open(test::options_in(dir_ / "logs"));
};

TEST_F(MediaTest, OneFileBecomesASingleValueAndARunFile) {
  write_file(dir_ / "cat.png", "picture");
  EXPECT_EQ(
      log_.log_media(3, "val/cat", {MediaKind::kImage, {{dir_ / "cat.png", "a cat"}}, R"({"format":"png"})"}),
      LogStatus::kOk);
  write_file(dir_ / "cat.png", "another one");
  const std::string sha = sha256_hex("picture");
  const std::string name = "media/images/val/cat_3_" + sha.substr(0, 20) + ".png";
  const json value = value_of("val/cat");
  EXPECT_EQ(value, (json{{"_type", "image-file"},
                         {"path", name},
                         {"sha256", sha},
                         {"size", 7},
                         {"caption", "a cat"},
                         {"format", "png"}}));
  const auto files = RankFile::open(log_.path()).files();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].name, name);
  EXPECT_EQ(files[0].kind, "media");
  EXPECT_EQ(test::read_file(log_.folder() / files[0].path), "picture");
}

TEST_F(MediaTest, SeveralFilesBecomeWandbsList) {
  write_file(dir_ / "a.png", "a");
  write_file(dir_ / "b.png", "b");
  log_.log_media(0, "samples",
                 {MediaKind::kImage, {{dir_ / "a.png", {}}, {dir_ / "b.png", "second"}}, R"({"width":8})"});
  const json value = value_of("samples");
  EXPECT_EQ(value["_type"], "images/separated");
  EXPECT_EQ(value["count"], 2);
  EXPECT_EQ(value["filenames"].size(), 2U);
  EXPECT_EQ(value["captions"], (json{"", "second"}));
  EXPECT_EQ(value["width"], 8);
  EXPECT_THROW(log_.log_media(0, "t", {MediaKind::kTable, {{dir_ / "a.png", {}}, {dir_ / "b.png", {}}}}),
               Error);
}

TEST_F(MediaTest, KeyCannotLeadOutOfTheFolder) {
  write_file(dir_ / "a.html", "x");
  log_.log_media(0, "../../etc/./x", {MediaKind::kHtml, {{dir_ / "a.html", {}}}});
  EXPECT_TRUE(log_.flush().durable);
  EXPECT_TRUE(RankFile::open(log_.path()).files().at(0).name.starts_with("media/html/__/__/etc/_/x_0_"));
}

TEST_F(MediaTest, HistogramKeepsEveryEdge) {
  const double edges[] = {-1, -0.5, 0.1, 1};
  const double counts[] = {1, 5, 2};
  EXPECT_EQ(log_.log_histogram(0, "grad", edges, counts), LogStatus::kOk);
  EXPECT_EQ(value_of("grad"),
            (json{{"_type", "histogram"}, {"values", {1, 5, 2}}, {"bins", {-1, -0.5, 0.1, 1}}}));
  EXPECT_THROW(log_.log_histogram(0, "grad", counts, counts), Error);
}

TEST_F(MediaTest, SavedFileBelongsToTheRun) {
  write_file(dir_ / "train.yaml", "lr: 1");
  EXPECT_EQ(log_.save_file(dir_ / "train.yaml", "configs/train.yaml"), LogStatus::kOk);
  EXPECT_THROW(log_.save_file(dir_ / "train.yaml", "../train.yaml"), Error);
  EXPECT_THROW(log_.save_file(dir_ / "missing.yaml"), Error);
  EXPECT_TRUE(log_.flush().durable);
  const auto files = RankFile::open(log_.path()).files();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].name, "configs/train.yaml");
  EXPECT_EQ(files[0].kind, "file");
}

TEST_F(MediaTest, WhatIsCapturedIsRecordedBeforeTheEnd) {
  write_file(dir_ / "big", std::string(std::size_t{32} << 20, 'x'));
  log_.save_file(dir_ / "big");
  EXPECT_TRUE(log_.finish().durable);
  EXPECT_EQ(RankFile::open(log_.path()).files().size(), 1U);
  EXPECT_EQ(log_.save_file(dir_ / "big"), LogStatus::kClosed);
}

// ThreadSanitizer starts no threads in a child of a process with threads.
#ifndef __SANITIZE_THREAD__
TEST_F(MediaTest, AFileThatTakesTooLongToDigestCostsNotTheEndOfTheLog) {
  test::Child child([&] {
    auto log = Writer::open(test::options_in(dir_ / "slow"));
    log.log(0, {{"loss", 0.5}});
    const auto huge = log.folder() / "huge";
    write_file(huge, "");
    std::filesystem::resize_file(huge, std::uintmax_t{1} << 40);  // of nothing but holes
    if (log.save_file(huge) != LogStatus::kOk) return 1;
    const auto outcome = log.finish(EndState::kFinished, 0, std::chrono::milliseconds(1500));
    if (outcome.durable || outcome.message.find("digested") == std::string::npos) return 2;
    if (outcome.message.find("the disk did not take") != std::string::npos) return 3;
    return RankFile::open(log.path()).info().end_state == EndState::kFinished ? 0 : 4;
  });
  EXPECT_EQ(child.wait(), 0);
}
#endif

TEST_F(MediaTest, ALimitMayBeForEver) {
  log_.log(0, {{"loss", 0.5}});
  EXPECT_TRUE(log_.flush(std::chrono::milliseconds::max()).durable);
  EXPECT_TRUE(log_.finish(EndState::kFinished, 0, std::chrono::milliseconds::max()).durable);
}

TEST_F(MediaTest, CountedStepsGoOnFromWhereTheRankWasRewoundTo) {
  for (int i = 0; i < 10; ++i) log_.log({{"i", i}});
  EXPECT_EQ(log_.rewind(4), LogStatus::kOk);
  EXPECT_EQ(log_.rewind(-1), LogStatus::kRejected);
  log_.log({{"i", 100}});
  const auto rows = test::read_rows(log_.path());
  ASSERT_EQ(rows.size(), 11U);
  EXPECT_EQ(rows.back().step, 4);
  EXPECT_EQ(RankFile::open(log_.path()).info().rewind_step, 4);
}

}  // namespace
}  // namespace ranklog
