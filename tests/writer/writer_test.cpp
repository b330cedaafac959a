#include "ranklog/writer/writer.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "helpers.hpp"

namespace ranklog {
namespace {

using namespace std::chrono_literals;
using test::list_folder;
using test::options_in;
using test::read_numbers;
using test::read_rows;

class WriterTest : public ::testing::Test {
 protected:
  const test::ScopedEnvironment environment_{{}};
  const test::TempDir dir_;
};

void expect_value(const test::ReadRow& row, const std::string& key, ValueView wanted) {
  const auto found = row.values.find(key);
  ASSERT_NE(found, row.values.end()) << key << " is missing";
  std::string seen;
  append_json(seen, found->second.view());
  EXPECT_TRUE(same_value(found->second.view(), wanted)) << key << " is " << seen;
}

TEST_F(WriterTest, RowsAreReadBackBitForBitFromTailAndFromChunks) {
  const double odd_nan = std::bit_cast<double>(std::uint64_t{0x7ff8dead00000001});
  const std::vector<std::pair<std::string, ValueView>> values{
      {"float", 0.1},
      {"nan", odd_nan},
      {"infinity", -std::numeric_limits<double>::infinity()},
      {"minus zero", -0.0},
      {"denormal", std::numeric_limits<double>::denorm_min()},
      {"int", std::numeric_limits<std::int64_t>::max()},
      {"least", std::numeric_limits<std::int64_t>::min()},
      {"true", true},
      {"null", nullptr},
      {"text", "snow \xE2\x98\x83\n\"quoted\""},
      {"", 1},
      {"loss/train", 2},
      {"histogram", ValueView::json(R"({"_type":"histogram","values":[1,2]})")}};
  std::vector<Field> fields;
  fields.reserve(values.size());
  for (const auto& [key, value] : values) fields.push_back({key, value});

  auto log = Writer::open(options_in(dir_.path()));
  EXPECT_EQ(log.log(7, fields), LogStatus::kOk);
  const auto check = [&] {
    const auto rows = read_rows(log.path());
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].step, 7);
    EXPECT_EQ(rows[0].values.size(), values.size());
    for (const auto& [key, value] : values) expect_value(rows[0], key, value);
  };
  check();
  EXPECT_EQ(log.log(8, {{"a.b", 3}}), LogStatus::kOk);
  EXPECT_TRUE(read_rows(log.path())[1].values.contains("a\\.b"));
  const auto outcome = log.finish();
  EXPECT_TRUE(outcome.durable) << outcome.message;
  const auto rows = read_rows(log.path());
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& [key, value] : values) expect_value(rows[0], key, value);
  EXPECT_FALSE(rows[1].values.contains("float")) << "a skipped key is absent";
}

TEST_F(WriterTest, JsonRowsKeepTheirStructure) {
  auto log = Writer::open(options_in(dir_.path()));
  EXPECT_EQ(
      log.log_json(1, R"({"a":{"b":1,"c":{"d":2.5}},"a.b":3,"list":[1,"x"],"empty":{},"on":true,"none":null,
      "image":{"_type":"image-file","path":"x.png"},"big":18446744073709551615,"text":"t"})"),
      LogStatus::kOk);
  const auto row = read_rows(log.path()).at(0);
  expect_value(row, "a.b", 1);
  expect_value(row, "a.c.d", 2.5);
  expect_value(row, "a\\.b", 3);
  expect_value(row, "list", ValueView::json(R"([1,"x"])"));
  expect_value(row, "empty", ValueView::json("{}"));
  expect_value(row, "on", true);
  expect_value(row, "none", nullptr);
  expect_value(row, "image", ValueView::json(R"({"_type":"image-file","path":"x.png"})"));
  expect_value(row, "big", ValueView::json("18446744073709551615"));
  expect_value(row, "text", "t");
  EXPECT_EQ(row.values.size(), 10U);
}

TEST_F(WriterTest, JsonThatIsNoObjectIsRejected) {
  auto log = Writer::open(options_in(dir_.path()));
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  for (const std::string& text :
       {std::string("[1]"), std::string("{"), std::string(), std::string("{}"), std::string(R"({"_step":1})"),
        std::string(R"({"a":1e999})"), R"({"a":)" + deep + "}"}) {
    EXPECT_EQ(log.log_json(1, text), LogStatus::kRejected) << text.substr(0, 40);
  }
  EXPECT_TRUE(read_rows(log.path()).empty());
}

TEST_F(WriterTest, ReservedNamesEmptyRowsAndNegativeStepsAreRejected) {
  auto log = Writer::open(options_in(dir_.path()));
  EXPECT_EQ(log.log(1, {{"_step", 1}}), LogStatus::kRejected);
  EXPECT_EQ(log.log(1, {{"loss", 1}, {"_timestamp", 1}}), LogStatus::kRejected);
  EXPECT_EQ(log.log(1, std::initializer_list<Field>{}), LogStatus::kRejected);
  EXPECT_EQ(log.log(-1, {{"loss", 1}}), LogStatus::kRejected);
  EXPECT_EQ(log.log({{"_runtime", 1}}), LogStatus::kRejected);
  EXPECT_EQ(log.log(1, {{"loss", 1}}), LogStatus::kOk);
  EXPECT_EQ(log.finish().dropped_rows, 0U);
  EXPECT_EQ(read_numbers(log.path(), "loss"), (std::vector<std::int64_t>{1}));
}

TEST_F(WriterTest, KeyThatStandsTwiceInOneCallKeepsItsLaterValue) {
  auto log = Writer::open(options_in(dir_.path()));
  EXPECT_EQ(log.log(1, {{"loss", 1}, {"lr", 5}, {"loss", 2}}), LogStatus::kOk);
  log.finish();
  const auto rows = read_rows(log.path());
  ASSERT_EQ(rows.size(), 1U);
  expect_value(rows[0], "loss", 2);
  expect_value(rows[0], "lr", 5);
}

TEST_F(WriterTest, StepsAreCountedFromZeroAndAfterTheGreatest) {
  auto log = Writer::open(options_in(dir_.path()));
  log.log({{"i", 0}});
  log.log({{"i", 1}});
  log.log(10, {{"i", 2}});
  log.log(3, {{"i", 3}});
  log.log({{"i", 4}});
  log.log(std::numeric_limits<std::int64_t>::max(), {{"i", 5}});
  EXPECT_EQ(log.log({{"i", 6}}), LogStatus::kRejected) << "there is no step behind the last one";
  std::vector<std::int64_t> steps;
  for (const auto& row : read_rows(log.path())) steps.push_back(row.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 1, 10, 3, 11, std::numeric_limits<std::int64_t>::max()}));
}

TEST_F(WriterTest, StepsThatGoBackAreKeptUnlessStrict) {
  auto options = options_in(dir_.path());
  {
    auto log = Writer::open(options);
    for (const int step : {0, 1, 2, 4, 3}) EXPECT_EQ(log.log(step, {{"i", step}}), LogStatus::kOk);
    EXPECT_EQ(read_numbers(log.path(), "i"), (std::vector<std::int64_t>{0, 1, 2, 4, 3}));
  }
  options.experiment = "strict";
  options.strict = true;
  auto log = Writer::open(options);
  for (const int step : {0, 1, 2, 4, 4}) EXPECT_EQ(log.log(step, {{"i", step}}), LogStatus::kOk);
  EXPECT_EQ(log.log(3, {{"i", 3}}), LogStatus::kRejected);
  EXPECT_EQ(read_numbers(log.path(), "i"), (std::vector<std::int64_t>{0, 1, 2, 4, 4}));
}

TEST_F(WriterTest, StepsBeyond32And53BitsAreExact) {
  auto log = Writer::open(options_in(dir_.path()));
  const std::vector<std::int64_t> steps{2147483646, 2147483647, 2147483648, 9007199254740993};
  for (const auto step : steps) log.log(step, {{"step", step}});
  log.finish();
  std::vector<std::int64_t> read;
  for (const auto& row : read_rows(log.path())) read.push_back(row.step);
  EXPECT_EQ(read, steps);
  EXPECT_EQ(read_numbers(log.path(), "step"), steps);
}

TEST_F(WriterTest, FinishLeavesTheDatabaseAlone) {
  auto log = Writer::open(options_in(dir_.path()));
  for (int i = 0; i < 100; ++i) log.log(i, {{"i", i}});
  const auto outcome = log.finish(EndState::kFailed, 3);
  EXPECT_TRUE(outcome.durable);
  EXPECT_EQ(outcome.message, "");
  EXPECT_EQ(list_folder(log.folder()), (std::vector<std::string>{"experiment.json", "rank-00000.db"}));

  const auto copy = dir_.path() / "copy.db";
  std::filesystem::copy_file(log.path(), copy);
  const auto file = RankFile::open(copy);
  EXPECT_EQ(file.info().rows, 100U);
  EXPECT_EQ(file.info().end_state, EndState::kFailed);
  EXPECT_EQ(file.info().exit_code, 3);
  EXPECT_EQ(test::integrity_check(copy), "ok");
}

TEST_F(WriterTest, FinishIsIdempotentAndLaterCallsReturnClosed) {
  auto log = Writer::open(options_in(dir_.path()));
  log.log(0, {{"i", 0}});
  EXPECT_TRUE(log.finish().durable);
  EXPECT_TRUE(log.finish(EndState::kFailed, 1).durable);
  EXPECT_EQ(log.log(1, {{"i", 1}}), LogStatus::kClosed);
  EXPECT_EQ(log.log_json(1, R"({"i":1})"), LogStatus::kClosed);
  EXPECT_EQ(log.config({{"a", 1}}), LogStatus::kClosed);
  EXPECT_EQ(log.event("x", "{}"), LogStatus::kClosed);
  EXPECT_TRUE(log.flush().durable);
  EXPECT_EQ(RankFile::open(log.path()).info().end_state, EndState::kFinished);
}

TEST_F(WriterTest, DestructorWithoutFinishKeepsEverythingAndLeavesTheFileNotEnded) {
  std::filesystem::path path;
  {
    auto log = Writer::open(options_in(dir_.path()));
    path = log.path();
    for (int i = 0; i < 10; ++i) log.log(i, {{"i", i}});
  }
  EXPECT_EQ(read_numbers(path, "i").size(), 10U);
  EXPECT_FALSE(RankFile::open(path).info().end_state);
  EXPECT_EQ(test::integrity_check(path), "ok");
}

TEST_F(WriterTest, ProcessExitWithoutFinishKeepsTenRows) {
  test::Child child([&] {
    auto log = Writer::open(options_in(dir_.path()));
    for (int i = 0; i < 10; ++i) log.log(i, {{"i", i}});
    ::_exit(0);
    return 1;
  });
  EXPECT_EQ(child.wait(), 0);
  const auto path = dir_.path() / "project" / "job" / "rank-00000.db";
  EXPECT_EQ(read_numbers(path, "i"), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_FALSE(RankFile::open(path).info().end_state);
}

TEST_F(WriterTest, AnotherProcessSeesARowAsSoonAsLogHasReturned) {
  test::Pipe returned;
  test::Pipe seen;
  auto options = options_in(dir_.path());
  options.chunk_rows = 16;  // sealing goes on all the time
  constexpr int kRows = 100;
  test::Child child([&] {
    auto log = Writer::open(options);
    for (int i = 0; i < kRows; ++i) {
      log.log(i, {{"i", i}});
      returned.write(&i, sizeof i);
      if (char ok = 0; !seen.read(&ok, 1)) return 1;
    }
    return 0;
  });
  returned.close_writer();
  seen.close_reader();
  const auto path = dir_.path() / "project" / "job" / "rank-00000.db";
  for (int i = 0; returned.read(&i, sizeof i);) {
    EXPECT_EQ(RankFile::open(path).info().rows, static_cast<std::uint64_t>(i) + 1);
    seen.write("y", 1);
  }
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(read_numbers(path, "i").size(), kRows);
}

TEST_F(WriterTest, RowsAreSealedWhenThereAreEnough) {
  auto options = options_in(dir_.path());
  options.chunk_rows = 50;
  auto log = Writer::open(options);
  for (int i = 0; i < 60; ++i) log.log(i, {{"i", i}});
  const auto sealed = [&] {
    std::uint64_t rows = 0;
    const auto file = RankFile::open(log.path());
    for (const auto& group : file.row_groups()) rows += group.id >= 0 ? group.rows : 0;
    return rows;
  };
  for (int i = 0; i < 200 && sealed() < 50; ++i) std::this_thread::sleep_for(20ms);
  EXPECT_GE(sealed(), 50U);
  EXPECT_EQ(read_numbers(log.path(), "i").size(), 60U);
}

TEST_F(WriterTest, RowsAreSealedWhenTheyAreOld) {
  auto options = options_in(dir_.path());
  options.seal_interval = 50ms;
  auto log = Writer::open(options);
  log.log(0, {{"i", 0}});
  const auto sealed = [&] {
    const auto file = RankFile::open(log.path());
    return !file.row_groups().empty() && file.row_groups()[0].id >= 0;
  };
  for (int i = 0; i < 200 && !sealed(); ++i) std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(sealed());
  EXPECT_EQ(log.log(1, {{"i", 1}}), LogStatus::kOk);
  EXPECT_EQ(read_numbers(log.path(), "i"), (std::vector<std::int64_t>{0, 1}));
}

TEST_F(WriterTest, ThreadsLogTogetherAndNothingIsLostOrDoubled) {
  constexpr int kThreads = 4;
  constexpr int kRows = 2000;
  auto options = options_in(dir_.path());
  options.chunk_rows = 256;
  options.sync_interval = 5ms;
  auto log = Writer::open(options);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&log, thread] {
        const std::string key = "of thread " + std::to_string(thread);
        for (int i = 0; i < kRows; ++i) {
          EXPECT_EQ(log.log(i, {{"thread", thread}, {key, i}}), LogStatus::kOk);
          if (i % 500 == 0) {
            EXPECT_TRUE(log.flush().durable);
          }
          if (i % 700 == 0) {
            EXPECT_EQ(log.event("mark", "{}", i), LogStatus::kOk);
          }
        }
      });
    }
  }
  log.finish();
  std::vector<std::int64_t> next(kThreads, 0);
  std::uint64_t last_sequence = 0;
  for (const auto& row : read_rows(log.path())) {
    const auto thread = row.values.at("thread").view().as_int64();
    const auto number = row.values.at("of thread " + std::to_string(thread)).view().as_int64();
    EXPECT_EQ(number, next[static_cast<std::size_t>(thread)]++);
    EXPECT_EQ(row.values.size(), 2U);
    EXPECT_GT(row.sequence, last_sequence);
    last_sequence = row.sequence;
  }
  EXPECT_EQ(next, std::vector<std::int64_t>(kThreads, kRows));
  EXPECT_EQ(RankFile::open(log.path()).events().size(), kThreads * 3U);
}

TEST_F(WriterTest, FlushMakesRowsDurableAndSaysSo) {
  auto log = Writer::open(options_in(dir_.path()));
  log.log(0, {{"i", 0}});
  const auto outcome = log.flush();
  EXPECT_TRUE(outcome.durable);
  EXPECT_EQ(outcome.dropped_rows, 0U);
  EXPECT_EQ(outcome.message, "");
}

TEST_F(WriterTest, ConfigMetricsEventsAndSummaryAreRecorded) {
  auto log = Writer::open(options_in(dir_.path()));
  EXPECT_EQ(log.config({{"lr", 1e-3}, {"layers", 4}, {"nan", std::nan("")}, {"name", "cnn"}}),
            LogStatus::kOk);
  EXPECT_EQ(log.config_json(R"({"optimizer":{"kind":"sgd"},"lr":0.5})"), LogStatus::kOk);
  EXPECT_EQ(log.config_json("[]"), LogStatus::kRejected);
  MetricDefinition definition;
  definition.name = "val/*";
  definition.step_metric = "epoch";
  definition.summary = {"min"};
  EXPECT_EQ(log.define_metric(definition), LogStatus::kOk);
  EXPECT_EQ(log.define_metric({}), LogStatus::kRejected);
  EXPECT_EQ(log.summary({{"best.loss", 0.25}}), LogStatus::kOk);
  EXPECT_EQ(log.event("barrier", R"({"seconds":0.5})", 12), LogStatus::kOk);
  EXPECT_EQ(log.event("barrier", "no json"), LogStatus::kRejected);
  EXPECT_EQ(log.event("", "{}"), LogStatus::kRejected);
  for (const char* kind : {"rewind", "drop", "artifact_use", "artifact_link", "_", "_later"}) {
    EXPECT_EQ(log.event(kind, "{}", 5), LogStatus::kRejected) << kind;
  }

  const auto check = [&] {
    const auto file = RankFile::open(log.path());
    std::map<std::string, std::string> config;
    for (const auto& entry : file.config()) config[entry.key] = entry.json;
    EXPECT_EQ(config, (std::map<std::string, std::string>{{"lr", "0.5"},
                                                          {"layers", "4"},
                                                          {"nan", "\"NaN\""},
                                                          {"name", "\"cnn\""},
                                                          {"optimizer", R"({"kind":"sgd"})"}}));
    ASSERT_EQ(file.metric_definitions().size(), 1U);
    EXPECT_EQ(file.metric_definitions()[0].name, "val/*");
    EXPECT_EQ(file.metric_definitions()[0].step_metric, "epoch");
    ASSERT_EQ(file.summary_overrides().size(), 1U);
    EXPECT_EQ(file.summary_overrides()[0].key, "best\\.loss");
    EXPECT_EQ(file.summary_overrides()[0].json, "0.25");
    ASSERT_EQ(file.events().size(), 1U);
    EXPECT_EQ(file.events()[0].kind, "barrier");
    EXPECT_EQ(file.events()[0].step, 12);
    EXPECT_EQ(file.events()[0].json, R"({"seconds":0.5})");
  };
  check();
  log.finish();
  check();
}

TEST_F(WriterTest, SettingsComeFromTheEnvironmentUnlessGiven) {
  const test::ScopedEnvironment variables({{"WANDB_PROJECT", "theirs"},
                                           {"RANKLOG_PROJECT", "ours"},
                                           {"WANDB_ENTITY", "team"},
                                           {"WANDB_RUN_GROUP", "group"},
                                           {"WANDB_NAME", "name"},
                                           {"WANDB_JOB_TYPE", "train"},
                                           {"WANDB_TAGS", "a, b"},
                                           {"WANDB_NOTES", "notes"},
                                           {"WANDB_RUN_ID", "their-id"},
                                           {"WANDB_DIR", dir_.path().string()}});
  Options options;
  options.name = "given";
  auto log = Writer::open(options);
  const Identity& identity = log.identity();
  EXPECT_EQ(identity.project, "ours");
  EXPECT_EQ(identity.entity, "team");
  EXPECT_EQ(identity.group, "group");
  EXPECT_EQ(identity.name, "given");
  EXPECT_EQ(identity.job_type, "train");
  EXPECT_EQ(identity.tags, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(identity.notes, "notes");
  EXPECT_EQ(identity.experiment, "their-id");
  EXPECT_EQ(identity.wandb_run_id, "their-id");
  EXPECT_EQ(log.path(), dir_.path() / "ranklog" / "ours" / "their-id" / "rank-00000.db");
  EXPECT_EQ(identity.pid, ::getpid());
  EXPECT_GT(identity.pid_start_ticks, 0U);
  EXPECT_FALSE(identity.host.empty());
  EXPECT_NE(identity.program.find("writer_test"), std::string::npos);
  EXPECT_EQ(RankFile::open(log.path()).info().identity, identity);
}

TEST_F(WriterTest, DisabledLoggingMakesNoFiles) {
  const auto check = [&](Options options) {
    options.log_dir = dir_.path() / "logs";
    auto log = Writer::open(options);
    EXPECT_FALSE(log.enabled());
    EXPECT_EQ(log.log(0, {{"i", 0}}), LogStatus::kDisabled);
    EXPECT_EQ(log.config({{"i", 0}}), LogStatus::kDisabled);
    log.artifact("model", "model").add_file("no such file").commit();
    EXPECT_TRUE(log.flush().durable);
    EXPECT_TRUE(log.finish().durable);
    EXPECT_TRUE(log.path().empty());
  };
  Options options;
  options.disabled = true;
  check(options);
  const test::ScopedEnvironment variables({{"WANDB_MODE", "disabled"}, {"RANK", "nonsense"}});
  check({});
  EXPECT_TRUE(list_folder(dir_.path()).empty());
}

TEST_F(WriterTest, MovedWriterGoesOnAndTheOneItReplacesIsClosed) {
  auto options = options_in(dir_.path());
  auto first = Writer::open(options);
  const auto first_path = first.path();
  first.log(0, {{"i", 1}});
  options.experiment = "other";
  auto second = Writer::open(options);
  first = std::move(second);
  EXPECT_EQ(first.log(0, {{"i", 2}}), LogStatus::kOk);
  EXPECT_EQ(read_numbers(first.path(), "i"), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(read_numbers(first_path, "i"), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(second.log(0, {{"i", 3}}), LogStatus::kClosed);  // NOLINT(bugprone-use-after-move)
}

TEST_F(WriterTest, AtMostEightDescriptorsAreOpen) {
  const auto descriptors = [] { return list_folder("/proc/self/fd").size(); };
  const auto before = descriptors();
  {
    auto options = options_in(dir_.path());
    options.chunk_rows = 10;
    auto log = Writer::open(options);
    for (int i = 0; i < 100; ++i) log.log(i, {{"i", i}});
    EXPECT_TRUE(log.flush().durable);
    EXPECT_LE(descriptors(), before + 8);
    log.finish();
  }
  EXPECT_EQ(descriptors(), before);
}

TEST_F(WriterTest, ExperimentIsOnDiskBeforeTheFirstStep) {
  test::Child child([&] {
    auto log = Writer::open(options_in(dir_.path()));
    log.config({{"lr", 1}});
    ::_exit(0);
    return 1;
  });
  ASSERT_EQ(child.wait(), 0);
  const auto folder = dir_.path() / "project" / "job";
  EXPECT_NE(test::read_file(folder / "experiment.json").find("\"experiment\": \"job\""), std::string::npos);
  const auto file = RankFile::open(folder / "rank-00000.db");
  EXPECT_EQ(file.info().identity.experiment, "job");
  ASSERT_EQ(file.config().size(), 1U);
  EXPECT_EQ(file.config()[0].key, "lr");
}

TEST_F(WriterTest, FolderThatCannotBeMadeIsNamedWithReasonAndRemedy) {
  test::write_file(dir_.path() / "file", "in the way");
  try {
    auto log = Writer::open(options_in(dir_.path() / "file"));
    ADD_FAILURE() << "opened " << log.path();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(text.find((dir_.path() / "file").string()), std::string::npos) << text;
    EXPECT_NE(text.find("Not a directory"), std::string::npos) << text;
    EXPECT_NE(text.find("RANKLOG_DIR"), std::string::npos) << text;
  }
}

// As root every folder is writable: the child becomes somebody else first.
int open_as_nobody(const std::filesystem::path& log_dir) {
  constexpr uid_t kNobody = 65534;
  if (::getuid() == 0 && ::setuid(kNobody) != 0) return 3;
  try {
    auto log = Writer::open(options_in(log_dir));
    return 2;
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool named = error.code() == ErrorCode::kIo && text.find(log_dir.string()) != std::string::npos &&
                       text.find("Permission denied") != std::string::npos &&
                       text.find("RANKLOG_DIR") != std::string::npos;
    if (!named) std::fprintf(stderr, "%s\n", text.c_str());
    return named ? 0 : 1;
  }
}

TEST_F(WriterTest, FolderThatIsNotWritableIsNamedWithReasonAndRemedy) {
  constexpr auto kReadOnly = static_cast<std::filesystem::perms>(0555);
  std::filesystem::permissions(dir_.path(), static_cast<std::filesystem::perms>(0755));
  std::filesystem::create_directory(dir_ / "empty");
  std::filesystem::permissions(dir_ / "empty", kReadOnly);
  test::Child cannot_create([&] { return open_as_nobody(dir_ / "empty"); });
  EXPECT_EQ(cannot_create.wait(), 0);

  std::filesystem::create_directories(dir_ / "used" / "project" / "job");
  std::filesystem::permissions(dir_ / "used" / "project" / "job", kReadOnly);
  test::Child cannot_write([&] { return open_as_nobody(dir_ / "used"); });
  EXPECT_EQ(cannot_write.wait(), 0);
}

TEST_F(WriterTest, LogThatCannotBeStartedLeavesNoRankFile) {
  std::filesystem::permissions(dir_.path(), static_cast<std::filesystem::perms>(0777));
  test::Child child([&] {
    constexpr uid_t kNobody = 65534;
    if (::getuid() == 0 && ::setuid(kNobody) != 0) return 3;
    const rlimit no_threads{};
    if (::setrlimit(RLIMIT_NPROC, &no_threads) != 0) return 4;
    try {
      auto log = Writer::open(options_in(dir_.path()));
      return 2;
    } catch (const Error& error) {
      return error.code() == ErrorCode::kIo ? 0 : 1;
    }
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(list_folder(dir_ / "project" / "job"), std::vector<std::string>{"experiment.json"});
}

TEST_F(WriterTest, FinishThatTimedOutMayBeTriedAgain) {
  auto log = Writer::open(options_in(dir_.path()));
  for (int i = 0; i < 1000; ++i) log.log(i, {{"i", i}});
  log.finish(EndState::kFinished, 0, std::chrono::milliseconds(0));
  const auto outcome = log.finish();
  EXPECT_TRUE(outcome.durable) << outcome.message;
  EXPECT_EQ(RankFile::open(log.path()).info().end_state, EndState::kFinished);
}

TEST_F(WriterTest, MissingWorkingDirectoryIsNamedWithTheRemedy) {
  test::Child child([&] {
    const auto gone = dir_ / "gone";
    std::filesystem::create_directory(gone);
    std::filesystem::current_path(gone);
    std::filesystem::remove(gone);
    try {
      auto log = Writer::open(options_in("logs"));
      return 2;
    } catch (const Error& error) {
      return std::string(error.what()).find("RANKLOG_DIR") != std::string::npos ? 0 : 1;
    }
  });
  EXPECT_EQ(child.wait(), 0);
}

// Merging chunks is a nicety: a run that ended well must not look crashed for want of it.
TEST_F(WriterTest, EndRecordIsWrittenWhereChunksCannotBeMerged) {
  auto options = options_in(dir_.path());
  options.seal_interval = 20ms;
  auto log = Writer::open(options);
  const auto chunks = [&] {
    const RankFile file = RankFile::open(log.path());
    return std::ranges::count_if(file.row_groups(), [](const RowGroupInfo& group) { return group.id > 0; });
  };
  for (int i = 0; i < 3; ++i) {
    log.log(i, {{"i", i}});
    for (int tries = 0; chunks() <= i && tries < 1000; ++tries) std::this_thread::sleep_for(20ms);
  }
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(log.path().c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(connection, "CREATE TRIGGER t BEFORE DELETE ON chunk BEGIN SELECT RAISE(ABORT, 'no'); END",
                   nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(connection);
  ASSERT_GT(chunks(), 1) << "there is nothing to merge";
  EXPECT_TRUE(log.finish(EndState::kFinished, 0, 20s).durable);
  EXPECT_EQ(RankFile::open(log.path()).info().end_state, EndState::kFinished);
  EXPECT_GT(RankFile::open(log.path()).row_groups().size(), 1u);
}

}  // namespace
}  // namespace ranklog
