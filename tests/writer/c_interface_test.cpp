// ranklog.h as a program in another language meets it.

#include <gtest/gtest.h>
#include <ranklog.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "helpers.hpp"
#include "ranklog/schema/durability.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

class CInterfaceTest : public ::testing::Test {
 protected:
  CInterfaceTest() {
    ranklog_options_init(&options_);
    log_dir_ = dir_.path().string();
    options_.log_dir = log_dir_.c_str();
    options_.project = "project";
    options_.experiment = "job";
  }
  ranklog_writer* open() {
    ranklog_writer* log = ranklog_open(&options_, &error_);
    EXPECT_NE(log, nullptr) << error_.message;
    return log;
  }

  const test::TempDir dir_;
  const test::ScopedEnvironment environment_{{}};
  std::string log_dir_;
  ranklog_options options_;
  ranklog_error error_;
};

TEST_F(CInterfaceTest, EveryKindOfValueComesBack) {
  ranklog_writer* log = open();
  const ranklog_field fields[] = {ranklog_f64("nan", std::nan("")),
                                  ranklog_f64("inf", -std::numeric_limits<double>::infinity()),
                                  ranklog_i64("most", std::numeric_limits<std::int64_t>::max()),
                                  ranklog_bool("yes", 7),
                                  ranklog_null("nothing"),
                                  ranklog_string("text", "two\nlines"),
                                  ranklog_json("list", "[1, null]")};
  EXPECT_EQ(ranklog_log(log, 3, fields, std::size(fields)), RANKLOG_OK);
  EXPECT_EQ(ranklog_log_next(log, fields, 1), RANKLOG_OK);
  EXPECT_EQ(ranklog_log_json(log, 9, R"({"a": {"b": 1.5}})"), RANKLOG_OK);
  EXPECT_EQ(ranklog_finish(log, RANKLOG_FAILED, 3, nullptr), 1);
  const RankFile file = RankFile::open(ranklog_path(log));
  ranklog_close(log);
  ASSERT_EQ(file.row_groups().size(), 3u);
  const RowGroup row = file.load(0);
  EXPECT_EQ(row.step, (std::vector<std::int64_t>{3}));
  EXPECT_TRUE(std::isnan(row.columns[0].at(0).as_double()));
  EXPECT_EQ(row.columns[1].at(0).as_double(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(row.columns[2].at(0).as_int64(), std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(row.columns[3].at(0).as_bool());
  EXPECT_EQ(row.columns[4].at(0).kind(), ValueKind::kNull);
  EXPECT_EQ(row.columns[5].at(0).text(), "two\nlines");
  EXPECT_EQ(row.columns[6].at(0).kind(), ValueKind::kJson);
  EXPECT_EQ(file.load(1).step, (std::vector<std::int64_t>{4}));
  EXPECT_EQ(file.keys().back().display(), "a.b");
  EXPECT_EQ(file.info().end_state, EndState::kFailed);
  EXPECT_EQ(file.info().exit_code, 3);
}

TEST_F(CInterfaceTest, RecordsComeBack) {
  options_.tags = "one,two";
  options_.log_strategy = "node";
  options_.rank = 1;
  options_.local_rank = 0;
  options_.world_size = 2;
  options_.local_world_size = 1;
  options_.node = 1;
  ranklog_writer* log = open();
  EXPECT_EQ(ranklog_rank(log), 1);
  EXPECT_STREQ(ranklog_experiment(log), "job");
  const ranklog_field entry = ranklog_f64("lr", 0.5);
  EXPECT_EQ(ranklog_config(log, &entry, 1), RANKLOG_OK);
  EXPECT_EQ(ranklog_config_json(log, R"({"depth": 3})"), RANKLOG_OK);
  EXPECT_EQ(ranklog_summary(log, &entry, 1), RANKLOG_OK);
  EXPECT_EQ(ranklog_define_metric(log, "loss", "epoch", 1, 0, "min,last", "minimize"), RANKLOG_OK);
  EXPECT_EQ(ranklog_event(log, "note", nullptr, -1), RANKLOG_OK);
  EXPECT_EQ(ranklog_event(log, "barrier", R"({"seconds": 1})", 5), RANKLOG_OK);
  test::write_file(dir_ / "model.pt", "weights");
  ranklog_artifact* artifact = ranklog_artifact_new(log, "model", "model");
  ranklog_artifact_add_file(artifact, (dir_ / "model.pt").c_str(), nullptr);
  ranklog_artifact_alias(artifact, "best");
  ranklog_artifact_metadata(artifact, R"({"accuracy": 0.9})");
  ranklog_artifact_step(artifact, 5);
  EXPECT_EQ(ranklog_artifact_commit(artifact, &error_), 0) << error_.message;
  ranklog_outcome outcome;
  EXPECT_EQ(ranklog_flush(log, 30'000, &outcome), 1) << outcome.message;
  const RankFile file = RankFile::open(ranklog_path(log));
  ranklog_close(log);
  EXPECT_EQ(file.info().identity.tags, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(file.info().identity.log_strategy, Strategy::kNode);
  EXPECT_EQ(file.info().identity.node, 1);
  EXPECT_FALSE(file.info().end_time_ns) << "closed, but never finished";
  EXPECT_EQ(file.config().size(), 2u);
  EXPECT_EQ(file.summary_overrides().size(), 1u);
  ASSERT_EQ(file.metric_definitions().size(), 1u);
  EXPECT_EQ(file.metric_definitions()[0].summary, (std::vector<std::string>{"min", "last"}));
  ASSERT_EQ(file.events().size(), 2u);
  EXPECT_EQ(file.events()[0].step, std::nullopt);
  EXPECT_EQ(file.events()[1].step, 5);
  ASSERT_EQ(file.artifacts().size(), 1u);
  EXPECT_EQ(file.artifacts()[0].aliases, (std::vector<std::string>{"best"}));
}

TEST_F(CInterfaceTest, WhatGoesWrongIsToldAndNeverThrown) {
  options_.log_strategy = "every";
  EXPECT_EQ(ranklog_open(&options_, &error_), nullptr);
  EXPECT_EQ(error_.code, RANKLOG_ERROR_USAGE);
  EXPECT_NE(std::strstr(error_.message, "every"), nullptr) << error_.message;
  options_.log_strategy = nullptr;
  test::write_file(dir_ / "a file", "");
  const std::string in_the_way = (dir_ / "a file").string();
  options_.log_dir = in_the_way.c_str();
  EXPECT_EQ(ranklog_open(&options_, &error_), nullptr);
  EXPECT_EQ(error_.code, RANKLOG_ERROR_IO);
  EXPECT_EQ(ranklog_open(&options_, nullptr), nullptr);
  options_.log_dir = log_dir_.c_str();
  options_.struct_bytes = 0;
  EXPECT_EQ(ranklog_open(&options_, &error_), nullptr);
  EXPECT_NE(std::strstr(error_.message, "ranklog_options_init"), nullptr) << error_.message;
  options_.struct_bytes = sizeof(options_) + 8;
  EXPECT_EQ(ranklog_open(&options_, &error_), nullptr);
  EXPECT_NE(std::strstr(error_.message, "newer"), nullptr) << error_.message;
}

TEST_F(CInterfaceTest, OptionsOfAnotherSizeAreFilledNoFurther) {
  struct {
    ranklog_options options;
    char behind[16];
  } larger;
  std::memset(&larger, 'x', sizeof(larger));
  ranklog_options_init_sized(&larger.options, sizeof(larger));
  EXPECT_EQ(larger.options.struct_bytes, sizeof(larger));
  EXPECT_EQ(larger.options.rank, -1);
  EXPECT_EQ(larger.behind[0], 'x');
  std::memset(&larger, 'x', sizeof(larger));
  ranklog_options_init_sized(&larger.options, offsetof(ranklog_options, rank));
  EXPECT_EQ(larger.options.log_dir, nullptr);
  EXPECT_NE(larger.options.rank, -1);
}

TEST_F(CInterfaceTest, HowTheFileIsWrittenCanBeForced) {
  options_.journal = "truncate";
  options_.tail = "append";
  ranklog_writer* log = open();
  const auto durability = parse_durability(RankFile::open(ranklog_path(log)).info().durability);
  ASSERT_TRUE(durability);
  EXPECT_EQ(durability->journal, JournalMode::kTruncate);
  EXPECT_EQ(durability->tail, "append");
  ranklog_close(log);
}

TEST_F(CInterfaceTest, BadCallsAreRejectedAndTheRestGoesOn) {
  ranklog_writer* log = open();
  const ranklog_field nameless = ranklog_f64(nullptr, 1);
  const ranklog_field reserved = ranklog_f64("_step", 1);
  const ranklog_field fine = ranklog_f64("loss", 1);
  EXPECT_EQ(ranklog_log(log, 0, &nameless, 1), RANKLOG_REJECTED);
  EXPECT_EQ(ranklog_config(log, &nameless, 1), RANKLOG_REJECTED);
  EXPECT_EQ(ranklog_log(log, 0, &reserved, 1), RANKLOG_REJECTED);
  ranklog_field unknown = fine;
  unknown.kind = static_cast<ranklog_kind>(7);
  EXPECT_EQ(ranklog_log(log, 0, &unknown, 1), RANKLOG_REJECTED);
  EXPECT_EQ(ranklog_log(log, -1, &fine, 1), RANKLOG_REJECTED);
  EXPECT_EQ(ranklog_log_json(log, 0, "[1]"), RANKLOG_REJECTED);
  EXPECT_EQ(ranklog_event(log, nullptr, nullptr, 0), RANKLOG_REJECTED);
  EXPECT_EQ(ranklog_log(log, 0, &fine, 1), RANKLOG_OK);
  ranklog_artifact* artifact = ranklog_artifact_new(log, "model", "model");
  ranklog_artifact_add_file(artifact, (dir_ / "nowhere").c_str(), nullptr);
  EXPECT_EQ(ranklog_artifact_commit(artifact, &error_), -1);
  EXPECT_NE(std::strstr(error_.message, "nowhere"), nullptr) << error_.message;
  ranklog_artifact_discard(ranklog_artifact_new(log, "model", "model"));
  EXPECT_EQ(ranklog_finish(log, RANKLOG_FINISHED, 0, nullptr), 1);
  EXPECT_EQ(ranklog_log(log, 1, &fine, 1), RANKLOG_CLOSED);
  ranklog_close(log);
}

TEST_F(CInterfaceTest, FilesReferencesAndRegisteredKeysHaveACall) {
  ranklog_writer* log = open();
  const uint32_t keys[] = {ranklog_key(log, "a"), ranklog_key(log, "b")};
  const double values[] = {1, 2, 3};
  EXPECT_EQ(ranklog_log_f64(log, 5, keys, values, 2), RANKLOG_OK);
  const uint32_t unknown = 77;
  EXPECT_EQ(ranklog_log_f64(log, 6, &unknown, values, 1), RANKLOG_REJECTED);
  EXPECT_EQ(ranklog_log_histogram(log, 6, "h", values, values, 2), RANKLOG_OK);
  EXPECT_EQ(ranklog_log_histogram(log, 6, "h", values, values, 0), RANKLOG_REJECTED);
  EXPECT_EQ(ranklog_rewind(log, 6), RANKLOG_OK);
  test::write_file(dir_ / "x.png", "picture");
  const std::string path = dir_ / "x.png";
  const char* const paths[] = {path.c_str()};
  EXPECT_EQ(ranklog_log_media(log, 7, "picture", RANKLOG_IMAGE, paths, nullptr, 1, nullptr, &error_), 0)
      << error_.message;
  EXPECT_EQ(ranklog_log_media(log, 7, "picture", RANKLOG_IMAGE, paths, nullptr, 0, nullptr, &error_), -1);
  EXPECT_EQ(ranklog_save_file(log, path.c_str(), nullptr, RANKLOG_LINK, &error_), 0) << error_.message;
  EXPECT_EQ(ranklog_save_file(log, (dir_ / "nowhere").c_str(), nullptr, RANKLOG_COPY, &error_), -1);
  EXPECT_EQ(ranklog_use_artifact(log, "e/p/base:v1", "model"), RANKLOG_OK);
  EXPECT_EQ(ranklog_link_artifact(log, "data", "e/registry/data", "best,production"), RANKLOG_OK);
  ranklog_artifact* artifact = ranklog_artifact_new(log, "data", "dataset");
  ranklog_artifact_add_reference(artifact, "s3://bucket/x", "x", 9, nullptr);
  ranklog_artifact_link_file(artifact, path.c_str(), nullptr);
  ranklog_artifact_ttl(artifact, 60);
  EXPECT_EQ(ranklog_artifact_commit(artifact, &error_), 0) << error_.message;
  EXPECT_EQ(ranklog_finish(log, RANKLOG_FINISHED, 0, nullptr), 1);
  const auto file = RankFile::open(ranklog_path(log));
  ranklog_close(log);
  EXPECT_EQ(file.info().rows, 3u);
  EXPECT_EQ(file.files().size(), 2u);
  ASSERT_EQ(file.artifacts().size(), 1u);
  EXPECT_EQ(file.artifacts()[0].ttl_seconds, 60);
  EXPECT_EQ(file.artifacts()[0].files.size(), 2u);
  ASSERT_EQ(file.events().size(), 3u);
  EXPECT_EQ(file.events()[2].json,
            R"({"artifact":"data","target":"e/registry/data","aliases":["best","production"]})");
}

TEST_F(CInterfaceTest, WithoutAWriterEveryCallIsHarmless) {
  const ranklog_field fine = ranklog_f64("loss", 1);
  EXPECT_EQ(ranklog_log(nullptr, 0, &fine, 1), RANKLOG_CLOSED);
  EXPECT_EQ(ranklog_finish(nullptr, RANKLOG_FINISHED, 0, nullptr), 1);
  EXPECT_EQ(ranklog_artifact_new(nullptr, "a", "b"), nullptr);
  EXPECT_EQ(ranklog_artifact_commit(nullptr, &error_), -1);
  ranklog_artifact_add_file(nullptr, "a", "b");
  EXPECT_STREQ(ranklog_path(nullptr), "");
  EXPECT_EQ(ranklog_enabled(nullptr), 0);
  ranklog_close(nullptr);
}

TEST_F(CInterfaceTest, LoggingThatIsOffDoesNothing) {
  options_.disabled = 1;
  ranklog_writer* log = open();
  const ranklog_field fine = ranklog_f64("loss", 1);
  EXPECT_EQ(ranklog_enabled(log), 0);
  EXPECT_EQ(ranklog_log(log, 0, &fine, 1), RANKLOG_DISABLED);
  EXPECT_STREQ(ranklog_path(log), "");
  ranklog_close(log);
}

}  // namespace
}  // namespace ranklog
