// Only the process that created a rank file writes to it, whatever else is started and whatever became of it.

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <sstream>

#include "helpers.hpp"
#include "ranklog/schema/owner.hpp"
#include "ranklog/schema/rank_database.hpp"
#include "ranklog/schema/time.hpp"

namespace ranklog {
namespace {

using Variables = std::map<std::string, std::string>;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class SecondWriterTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path file(const char* name) const {
    return dir_.path() / "project" / "job" / name;
  }
  // A launch of rank `rank` of 4, the `restarts`th of its launcher's job.
  static Variables worker(int rank, int restarts) {
    return {{"RANK", std::to_string(rank)},
            {"LOCAL_RANK", std::to_string(rank)},
            {"WORLD_SIZE", "4"},
            {"LOCAL_WORLD_SIZE", "4"},
            {"TORCHELASTIC_RUN_ID", "job"},
            {"TORCHELASTIC_RESTART_COUNT", std::to_string(restarts)},
            {"MASTER_PORT", "29500"}};
  }
  Options options_for_launcher() {
    Options options;
    options.log_dir = dir_.path();
    options.project = "project";
    return options;
  }
  // Opens and dies at once, before any log() call.
  void open_and_die(const Options& options) {
    test::Child child([&] {
      auto log = Writer::open(options);
      ::raise(SIGKILL);
      return 1;
    });
    ASSERT_EQ(child.wait(), 128 + SIGKILL);
  }
  static std::string message_of_creating(const std::filesystem::path& path) {
    try {
      (void)RankDatabase::create(path, Identity(), 0);
      return "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBusy);
      return error.what();
    }
  }

  const test::ScopedEnvironment environment_{{}};
  const test::TempDir dir_;
};

TEST_F(SecondWriterTest, IsRefusedNamingHostPidAndStartOfTheFirst) {
  auto log = Writer::open(test::options_in(dir_.path()));
  const auto info = RankFile::open(log.path()).info();
  const auto message = message_of_creating(log.path());
  for (const std::string& part : {info.identity.host, "pid " + std::to_string(::getpid()),
                                  rfc3339(info.start_time_ns), std::string("still running")}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
}

TEST_F(SecondWriterTest, SeesThatTheOwnerIsGone) {
  open_and_die(test::options_in(dir_.path()));
  const auto info = RankFile::open(file("rank-00000.db")).info();
  EXPECT_EQ(owner_state(info, unix_time_ns()), OwnerState::kGone);
  EXPECT_NE(message_of_creating(file("rank-00000.db")).find("which is gone"), std::string::npos);
}

// Nothing is known of processes elsewhere but how long they have been silent.
TEST_F(SecondWriterTest, TellsAnOwnerOnAnotherHostBySilence) {
  FileInfo info;
  info.identity.host = "another-host.invalid";
  info.identity.pid = 1;
  info.heartbeat_ns = 1'000'000'000;
  EXPECT_EQ(owner_state(info, info.heartbeat_ns + 599'000'000'000), OwnerState::kRunning);
  EXPECT_EQ(owner_state(info, info.heartbeat_ns + 601'000'000'000), OwnerState::kSilent);
  info.end_time_ns = 5;
  EXPECT_EQ(owner_state(info, info.heartbeat_ns), OwnerState::kEnded);
}

TEST_F(SecondWriterTest, CompactingAFileThatIsBeingWrittenIsRefusedNamingTheOwner) {
  auto log = Writer::open(test::options_in(dir_.path()));
  try {
    (void)compact_rank_file(log.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBusy);
    EXPECT_NE(std::string(error.what()).find("pid " + std::to_string(::getpid())), std::string::npos);
  }
}

TEST_F(SecondWriterTest, ALaunchThatIsRunningAlreadyIsNamed) {
  const test::ScopedEnvironment variables(worker(2, 0));
  auto first = Writer::open(options_for_launcher());
  try {
    (void)Writer::open(options_for_launcher());
    FAIL();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("pid " + std::to_string(::getpid())), std::string::npos) << message;
    EXPECT_NE(message.find("still running"), std::string::npos) << message;
  }
}

// Case C55: killed after open(), before anything was logged.
TEST_F(SecondWriterTest, TheIdIsDurableBeforeTheFirstStepAndTheNextStartGoesOnWithIt) {
  open_and_die(test::options_in(dir_.path()));
  EXPECT_NE(bytes_of(file("experiment.json")).find("\"job\""), std::string::npos);
  auto options = test::options_in(dir_.path());
  options.resume = true;
  auto log = Writer::open(options);
  EXPECT_EQ(log.identity().experiment, "job");
  EXPECT_EQ(log.path(), file("rank-00000.1.db"));
}

// Case C10: killed in mid-commit without WAL; the next launch must neither write to that file nor fail on it.
TEST_F(SecondWriterTest, ARestartLeavesAFileThatDiedInMidCommitAsItIs) {
  auto options = test::options_in(dir_.path());
  options.journal = "persist";
  options.seal_interval = std::chrono::milliseconds(1);
  {
    auto log = Writer::open(options);
    EXPECT_EQ(log.log(3, {{"i", 3}}), LogStatus::kOk);
    EXPECT_TRUE(log.flush().durable);
  }
  const auto path = file("rank-00000.db");
  test::Child child([&] {
    sqlite3* database = nullptr;
    sqlite3_open(path.c_str(), &database);
    const int result =
        sqlite3_exec(database,
                     "PRAGMA journal_mode = persist; PRAGMA cache_size = 3; BEGIN; DELETE FROM meta; "
                     "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
                     "INSERT INTO event SELECT i, i, i, 'x', hex(randomblob(200)) FROM n",
                     nullptr, nullptr, nullptr);
    ::_exit(result == SQLITE_OK ? 7 : 8);
    return 0;
  });
  ASSERT_EQ(child.wait(), 7);
  const auto before = bytes_of(path);
  auto journal = path;
  journal += "-journal";
  const auto journal_before = bytes_of(journal);
  ASSERT_FALSE(journal_before.empty());

  options.resume = true;
  auto log = Writer::open(options);
  EXPECT_EQ(log.path(), file("rank-00000.1.db"));
  EXPECT_EQ(log.log({{"i", 4}}), LogStatus::kOk);
  EXPECT_TRUE(log.finish().durable);
  EXPECT_EQ(test::read_rows(log.path()).at(0).step, 4) << "counting goes on behind the old file";
  EXPECT_EQ(test::read_numbers(path, "i"), (std::vector<std::int64_t>{3}));
  EXPECT_TRUE(bytes_of(path) == before) << "the old file was written to";
  EXPECT_TRUE(bytes_of(journal) == journal_before) << "the old journal was written to";
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  sqlite3_exec(database, "SELECT count(*) FROM meta", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  EXPECT_EQ(test::integrity_check(path), "ok") << "SQLite itself can still roll it back";
}

// A launcher that restarts one worker of four counts for that worker alone: 0, 1, 0, 0.
TEST_F(SecondWriterTest, OneRestartedWorkerOfFourGetsAFileOfItsOwn) {
  const auto open = [&](int rank, int restarts) {
    const test::ScopedEnvironment variables(worker(rank, restarts));
    auto log = Writer::open(options_for_launcher());
    EXPECT_EQ(log.log({{"i", rank}}), LogStatus::kOk);
    return log;
  };
  std::vector<Writer> running;
  running.push_back(open(0, 0));
  running.push_back(open(2, 0));
  running.push_back(open(3, 0));
  auto first = open(1, 0);
  {
    const Writer gone = std::move(first);
  }
  auto restarted = open(1, 1);
  EXPECT_EQ(restarted.identity().experiment, "job");
  EXPECT_EQ(restarted.path(), file("rank-00001.1.db"));
  for (auto& log : running) {
    EXPECT_EQ(log.identity().experiment, "job");
    EXPECT_EQ(log.log({{"i", 1}}), LogStatus::kOk);
    EXPECT_TRUE(log.finish().durable);
  }
  EXPECT_TRUE(restarted.finish().durable);
  EXPECT_NE(RankFile::open(file("rank-00001.1.db")).info().identity.launch_token,
            RankFile::open(file("rank-00001.db")).info().identity.launch_token);
}

// The same id in a later job is no restart: the first run stays as it is.
TEST_F(SecondWriterTest, AReusedIdThatIsNoRestartIsASibling) {
  auto first = Writer::open(test::options_in(dir_.path()));
  const auto bytes = bytes_of(first.path());
  auto second = Writer::open(test::options_in(dir_.path()));
  EXPECT_EQ(second.identity().experiment, "job~2");
  EXPECT_EQ(bytes_of(first.path()), bytes);
}

}  // namespace
}  // namespace ranklog
