// A disk that refuses, or takes its time: training goes on, and the log tells the truth.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <tuple>

#include "filler.hpp"
#include "helpers.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/rank_database.hpp"
#include "ranklog/schema/tail.hpp"
#include "support/faulty_disk.hpp"

namespace ranklog {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::FaultyDisk;
using test::Filler;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class DiskFaultTest : public ::testing::Test {
 protected:
  DiskFaultTest() { folder_ = std::filesystem::canonical(dir_.path()); }

  const test::ScopedEnvironment environment_{{}};
  const test::TempDir dir_;
  std::filesystem::path folder_;
};

using Fault = std::tuple<int, const char*>;
class FailingDisk : public DiskFaultTest, public ::testing::WithParamInterface<Fault> {};

TEST_P(FailingDisk, TrainingGoesOnAndEveryKeptRowIsWrittenWhenTheDiskIsWellAgain) {
  const auto [error, tail] = GetParam();
  FaultyDisk disk(folder_);
  auto options = test::small_options(folder_);
  options.tail = tail;
  ::testing::internal::CaptureStderr();
  auto log = Writer::open(options);
  Filler filler(log);
  EXPECT_EQ(filler.log_one(), LogStatus::kOk);
  disk.fail_all(error);
  ASSERT_TRUE(filler.log_until(LogStatus::kDropped)) << "the queue never filled";
  const auto start = steady_clock::now();
  const auto told = log.flush(3s);
  EXPECT_LT(steady_clock::now() - start, 5s);
  EXPECT_FALSE(told.durable);
  EXPECT_EQ(told.dropped_rows, filler.dropped());
  EXPECT_TRUE(holds(told.message, errno_text(error))) << told.message;
  EXPECT_GT(disk.failed, 0);

  disk.recover();
  ASSERT_TRUE(filler.log_until(LogStatus::kOk, 20ms)) << "did not recover";
  for (int i = 0; i < 10; ++i) filler.log_one();
  const auto outcome = log.finish(EndState::kFinished, 0, 20s);
  const auto printed = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1) << printed;
  EXPECT_EQ(outcome.dropped_rows, filler.dropped());
  EXPECT_EQ(test::integrity_check(log.path()), "ok");
  EXPECT_EQ(test::read_numbers(log.path(), "i"), filler.kept());
  EXPECT_EQ(RankFile::open(log.path()).info().dropped_rows, filler.dropped());
  EXPECT_EQ(test::rows_in_drop_events(log.path()), filler.dropped());
}

TEST_P(FailingDisk, FinishReturnsInTimeAndSaysWhatIsLost) {
  const auto [error, tail] = GetParam();
  FaultyDisk disk(folder_);
  auto options = test::small_options(folder_);
  options.tail = tail;
  std::vector<std::int64_t> safe;
  {
    auto log = Writer::open(options);
    Filler filler(log);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(filler.log_one(), LogStatus::kOk);
    EXPECT_TRUE(log.flush(10s).durable);
    safe = filler.safe();
    disk.fail_all(error);
    ASSERT_TRUE(filler.log_until(LogStatus::kDropped));
    const auto start = steady_clock::now();
    const auto outcome = log.finish(EndState::kFinished, 0, 20s);
    EXPECT_LT(steady_clock::now() - start, 5s);
    EXPECT_FALSE(outcome.durable);
    EXPECT_GE(outcome.dropped_rows, filler.dropped());
    EXPECT_TRUE(holds(outcome.message, errno_text(error))) << outcome.message;
  }
  disk.recover();
  const auto path = folder_ / "project" / "job" / "rank-00000.db";
  EXPECT_EQ(test::integrity_check(path), "ok");
  const auto found = test::read_numbers(path, "i");
  EXPECT_TRUE(std::includes(found.begin(), found.end(), safe.begin(), safe.end()));
  EXPECT_FALSE(RankFile::open(path).info().end_time_ns);
}

std::string name_of(const ::testing::TestParamInfo<Fault>& info) {
  const auto [error, tail] = info.param;
  const char* name = error == ENOSPC   ? "Full"
                     : error == EDQUOT ? "Quota"
                     : error == EIO    ? "Broken"
                                       : "ReadOnly";
  return std::string(name) + (std::string(tail) == "mapped" ? "Mapped" : "Append");
}

INSTANTIATE_TEST_SUITE_P(Errors, FailingDisk,
                         ::testing::Combine(::testing::Values(ENOSPC, EDQUOT, EIO, EROFS),
                                            ::testing::Values("mapped", "append")),
                         name_of);

// One call in many fails, now here and now there.
TEST_F(DiskFaultTest, FaultsThatPassLeaveNoTrace) {
  FaultyDisk disk(folder_);
  auto options = test::small_options(folder_);
  options.queue_bytes = std::size_t{8} << 20;
  auto log = Writer::open(options);
  std::vector<std::int64_t> kept;
  for (int round = 0; round < 30; ++round) {
    disk.passes = round;
    disk.fail_all(round % 2 == 0 ? ENOSPC : EIO);
    for (int i = 0; i < 50; ++i) {
      const auto number = static_cast<std::int64_t>(kept.size());
      const auto status = log.log(number, {{"i", number}});
      ASSERT_TRUE(status == LogStatus::kOk || status == LogStatus::kInMemory);
      kept.push_back(number);
    }
    std::this_thread::sleep_for(20ms);
    disk.recover();
    if (round % 5 == 0) {
      EXPECT_TRUE(log.flush(20s).durable);
    }
  }
  EXPECT_TRUE(log.finish(EndState::kFinished, 0, 20s).durable);
  EXPECT_EQ(test::integrity_check(log.path()), "ok");
  EXPECT_EQ(test::read_numbers(log.path(), "i"), kept);
}

TEST_F(DiskFaultTest, AFolderThatIsRemovedIsToldOfAndEndsInTime) {
  auto options = test::small_options(folder_);
  auto log = Writer::open(options);
  Filler filler(log);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(filler.log_one(), LogStatus::kOk);
  std::filesystem::remove_all(log.folder());
  const auto end = steady_clock::now() + 1s;
  while (steady_clock::now() < end) {
    filler.log_one();
    std::this_thread::sleep_for(1ms);
  }
  const auto start = steady_clock::now();
  const auto outcome = log.finish(EndState::kFinished, 0, 20s);
  EXPECT_LT(steady_clock::now() - start, 5s);
  EXPECT_FALSE(outcome.durable) << "nobody will ever find these rows";
  EXPECT_TRUE(holds(outcome.message, "removed") || holds(outcome.message, "No such file")) << outcome.message;
}

TEST_F(DiskFaultTest, WantOfSpaceComesWithTheFactsThatDfWouldTell) {
  FaultyDisk disk(folder_);
  disk.create_error = ENOSPC;
  try {
    (void)Writer::open(test::options_in(folder_));
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(holds(error.what(), "No space left on device")) << error.what();
    EXPECT_TRUE(holds(error.what(), "free on the file system of")) << error.what();
  }
  disk.create_error = EDQUOT;
  try {
    (void)Writer::open(test::options_in(folder_));
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(holds(error.what(), "quota")) << error.what();
    EXPECT_TRUE(holds(error.what(), "the file system itself has")) << error.what();
  }
}

// SIGXFSZ ends a process that does not ask for anything else.
TEST_F(DiskFaultTest, ALimitOnFileSizesDoesNotEndTheProcess) {
  for (const char* tail : {"mapped", "append"}) {
    test::Child child([&] {
      std::signal(SIGXFSZ, SIG_DFL);
      auto options = test::small_options(folder_);
      options.experiment = tail;
      options.tail = tail;
      const rlimit limit{std::size_t{256} << 10, RLIM_INFINITY};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
      auto log = Writer::open(options);
      Filler filler(log);
      if (!filler.log_until(LogStatus::kDropped)) return 2;
      const auto outcome = log.finish(EndState::kFinished, 0, 10s);
      return !outcome.durable && holds(outcome.message, "File too large") ? 0 : 3;
    });
    EXPECT_EQ(child.wait(), 0) << tail;
  }
}

TEST_F(DiskFaultTest, WithoutHardLinksAFileIsStillMadeOnce) {
  FaultyDisk disk(folder_);
  Identity identity;
  identity.project = "project";
  identity.experiment = "job";
  for (const int error : {EPERM, EOPNOTSUPP, ENOSYS}) {
    disk.link_error = error;
    const auto path = folder_ / ("rank-0000" + std::to_string(error) + ".db");
    {
      const auto database = RankDatabase::create(path, identity, 1);
    }
    EXPECT_EQ(RankFile::open(path).info().start_time_ns, 1);
    try {
      const auto again = RankDatabase::create(path, identity, 2);
      ADD_FAILURE() << "made twice";
    } catch (const Error& refusal) {
      EXPECT_EQ(refusal.code(), ErrorCode::kBusy) << refusal.what();
    }
    EXPECT_EQ(RankFile::open(path).info().start_time_ns, 1);
  }
  EXPECT_EQ(disk.failed, 6);
  for (const auto& name : test::list_folder(folder_)) EXPECT_EQ(name.rfind("rank-", 0), 0U) << name;
}

TEST_F(DiskFaultTest, MediaBeyondALimitOnFileSizesDoNotEndTheProcess) {
  const auto picture = dir_.path() / "picture.png";
  test::write_file(picture, std::string(std::size_t{1} << 20, 'x'));
  test::Child child([&] {
    auto log = Writer::open(test::options_in(folder_));
    constexpr rlim_t kLimit = 200 << 10;
    const rlimit limit{kLimit, kLimit};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto refused = [](const auto& call) {
      try {
        call();
        return false;
      } catch (const Error& error) {
        return error.code() == ErrorCode::kIo;
      }
    };
    const Media media{.kind = MediaKind::kImage, .files = {{picture, ""}}};
    if (!refused([&] { log.log_media(0, "picture", media); })) return 1;
    if (!refused([&] { log.save_file(picture); })) return 2;
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(DiskFaultTest, NobodyWhoReadsTheConsoleIsWaitedFor) {
  test::Child child([&] {
    ::alarm(60);
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK) != 0) return 1;
    while (::write(ends[1], "x", 1) == 1) continue;  // full
    ::fcntl(ends[1], F_SETFL, 0);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(ends[1], stream);
    FaultyDisk disk(folder_);
    auto log = Writer::open(test::small_options(folder_));
    disk.fail_all(EIO);
    Filler filler(log);
    if (!filler.log_until(LogStatus::kDropped)) return 2;
    disk.recover();
    if (!filler.log_until(LogStatus::kOk, 20ms)) return 3;
    if (log.finish(EndState::kFinished, 0, 20s).dropped_rows != filler.dropped()) return 4;
    return test::read_numbers(log.path(), "i") == filler.kept() ? 0 : 5;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(DiskFaultTest, SlowSyncsAreNotWaitedFor) {
  FaultyDisk disk(folder_);
  auto options = test::options_in(folder_);
  options.sync_interval = 10ms;
  options.seal_interval = 200ms;
  auto log = Writer::open(options);
  const auto slow_calls_in = [&](std::chrono::seconds time) {
    int slow = 0;
    const auto end = steady_clock::now() + time;
    for (auto before = steady_clock::now(); before < end; before = steady_clock::now()) {
      EXPECT_EQ(log.log(0, {{"a", 1.0}, {"b", 2}}), LogStatus::kOk);
      if (steady_clock::now() - before > 400ms) ++slow;
      std::this_thread::sleep_for(200us);
    }
    return slow;
  };
  disk.sync_ms = 500;
  const int before = disk.syncs;
  // A machine under load may stop the caller once; waiting for the disk would stop it for each sync.
  EXPECT_LE(slow_calls_in(4s), 1);
  EXPECT_GE(disk.syncs - before, 4) << "nothing was synced meanwhile";
  disk.sync_ms = 0;
  EXPECT_TRUE(log.finish(EndState::kFinished, 0, 30s).durable);
}

// A key, a chunk and an event of its own.
SealBatch batch_number(std::uint64_t number) {
  SealBatch batch;
  RowGroupBuilder rows;
  ChunkEncoder encoder;
  const auto key = static_cast<KeyId>(number - 1);
  rows.add({2 * number - 1, static_cast<std::int64_t>(number), 100, {{key, 1.5}}});
  batch.new_keys = {KeyPath::flat("key " + std::to_string(number))};
  batch.chunks = {encode(rows.take().front(), encoder)};
  batch.operations = {{2 * number, 100, Event{0, 0, {}, "note", "{}"}}};
  batch.watermark = 2 * number;
  return batch;
}

void expect_batches(const std::filesystem::path& path, std::uint64_t count) {
  const RankFile file = RankFile::open(path);
  EXPECT_EQ(file.info().rows, count);
  EXPECT_EQ(file.keys().size(), count);
  EXPECT_EQ(file.row_groups().size(), count);
  EXPECT_EQ(file.events().size(), count);
  file.check_pages();
  for (const Damage& damage : file.damage()) ADD_FAILURE() << damage.place << ": " << damage.reason;
}

class CommitFault : public DiskFaultTest, public ::testing::WithParamInterface<Durability> {};

// The last sync of a COMMIT comes after the transaction stands.
TEST_P(CommitFault, BatchIsInOnceWhicheverSyncOfItsCommitFails) {
  FaultyDisk disk(folder_);
  disk.once = true;
  Identity identity;
  identity.project = "p";
  identity.experiment = "e";
  for (int good_syncs = 0;; ++good_syncs) {
    const auto path = folder_ / ("rank-" + std::to_string(good_syncs) + ".db");
    RankDatabase database = RankDatabase::create(path, identity, 1, GetParam());
    database.commit(batch_number(1));
    disk.failed = 0;
    disk.passes = good_syncs;
    disk.sync_error = EIO;
    try {
      database.commit(batch_number(2));
    } catch (const Error&) {
      EXPECT_NO_THROW(database.commit(batch_number(2))) << good_syncs;
    }
    disk.recover();
    database.commit(batch_number(3));
    database.finish(EndState::kFinished, 0, 200, 5);
    if (disk.failed == 0) break;
    expect_batches(path, 3);
  }
}

Durability in_mode(JournalMode mode, bool locks = true) {
  Durability durability;
  durability.journal = mode;
  durability.locks = locks;
  return durability;
}

INSTANTIATE_TEST_SUITE_P(Modes, CommitFault,
                         ::testing::Values(in_mode(JournalMode::kWal), in_mode(JournalMode::kPersist),
                                           in_mode(JournalMode::kTruncate), in_mode(JournalMode::kDelete),
                                           in_mode(JournalMode::kPersist, false)));

}  // namespace
}  // namespace ranklog
