#include "ranklog/schema/experiment.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <sstream>

#include "ranklog/schema/naming.hpp"
#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using test::identity_of_rank;
using test::kStartTimeNs;
using test::RankFileBuilder;
using test::TempDir;

constexpr std::int64_t kSecondNs = 1'000'000'000;

struct Launch {
  std::string token;
  std::int64_t start_seconds = 0;
  std::optional<std::int64_t> resume_step;
};

// Writes one file of experiment p/e with rows at the given steps.
fs::path write_rank(const fs::path& folder, int rank, int number, const Launch& launch,
                    const std::vector<std::int64_t>& steps, int world_size = 2) {
  Identity identity = identity_of_rank(rank, world_size);
  identity.launch_token = launch.token;
  identity.resume_step = launch.resume_step;
  const fs::path path = folder / rank_file_name(rank, number);
  RankFileBuilder builder(path, identity, kStartTimeNs + launch.start_seconds * kSecondNs);
  for (const std::int64_t step : steps) builder.row(step, {{"loss", 1.0}});
  builder.finish();
  return path;
}

ScanResult scan_all(std::vector<fs::path> inputs) {
  return scan(inputs);
}

// All that a scan says, as text.
std::string describe_scan(const ScanResult& result) {
  std::ostringstream out;
  for (const Experiment& experiment : result.experiments) {
    out << experiment.project << '/' << experiment.id << ' ' << experiment.folder << '\n';
    for (const Attempt& attempt : experiment.attempts) {
      out << "  " << attempt.number << ' ' << attempt.launch_token << ' ' << attempt.resume_step.value_or(-1)
          << ' ' << attempt.start_time_ns << '\n';
      for (const RankSegment& segment : attempt.segments) out << "    " << segment.path << '\n';
    }
  }
  for (const ScanProblem& problem : result.problems) out << problem.path << ' ' << problem.message << '\n';
  return out.str();
}

TEST(Scan, FilesAreGroupedByProjectExperimentAndLaunch) {
  const TempDir dir;
  const fs::path folder = dir / "p" / "e";
  write_rank(folder, 0, 0, {"first", 0, {}}, {0, 1});
  write_rank(folder, 1, 0, {"first", 1, {}}, {0, 1});
  write_rank(folder, 0, 1, {"second", 100, 1}, {1, 2});
  write_rank(folder, 1, 1, {"second", 99, 2}, {1, 2});
  Identity other = identity_of_rank(0);
  other.experiment = "other";
  RankFileBuilder(dir / "p" / "other" / "rank-00000.db", other, kStartTimeNs - 5).finish();
  other.project = "a project";
  RankFileBuilder(dir / "q" / "other" / "rank-00000.db", other, kStartTimeNs).finish();

  const ScanResult result = scan_all({dir.path()});
  EXPECT_TRUE(result.problems.empty());
  ASSERT_EQ(result.experiments.size(), 3u);
  EXPECT_EQ(result.experiments[0].project, "a project");
  EXPECT_EQ(result.experiments[1].id, "other") << "it started first";
  const Experiment& experiment = result.experiments[2];
  EXPECT_EQ(experiment.folder, folder);
  EXPECT_EQ(experiment.world_size(), 2);
  EXPECT_EQ(experiment.ranks(), (std::vector<int>{0, 1}));
  EXPECT_TRUE(experiment.missing_ranks().empty());
  ASSERT_EQ(experiment.attempts.size(), 2u);
  EXPECT_EQ(experiment.attempts[0].launch_token, "first");
  EXPECT_FALSE(experiment.attempts[0].resume_step);
  EXPECT_EQ(experiment.attempts[1].resume_step, 1) << "the smallest of its files";
  EXPECT_EQ(experiment.attempts[1].start_time_ns, kStartTimeNs + 100 * kSecondNs) << "rank 0's";
  EXPECT_EQ(experiment.identity().launch_token, "second");
  ASSERT_EQ(experiment.segments_of(1).size(), 2u);
  EXPECT_EQ(experiment.segments_of(1)[1]->path, folder / "rank-00001.1.db");
}

TEST(Scan, AnyLevelOfTheTreeMayBeGiven) {
  const TempDir dir;
  const fs::path folder = dir / "p" / "e";
  const fs::path file = write_rank(folder, 0, 0, {"t", 0, {}}, {0});
  for (const fs::path& input : {dir.path(), dir / "p", folder, file}) {
    const ScanResult result = scan_all({input});
    ASSERT_EQ(result.experiments.size(), 1u) << input;
    EXPECT_EQ(result.experiments[0].segments_of(0)[0]->path, file);
  }
}

TEST(Scan, OrderOfInputsChangesNothing) {
  const TempDir dir;
  std::vector<fs::path> inputs;
  for (int rank = 0; rank < 3; ++rank) {
    const fs::path folder = dir / ("node" + std::to_string(rank));
    inputs.push_back(write_rank(folder, rank, 0, {"first", rank, {}}, {0, 1}, 3));
    inputs.push_back(write_rank(folder, rank, 1, {"second", 50 - rank, 1}, {1}, 3));
    inputs.push_back(folder);
  }
  inputs.push_back(dir.path());
  const std::string expected = describe_scan(scan(inputs));
  EXPECT_NE(expected.find("first"), std::string::npos);
  std::mt19937 random(1);
  for (int i = 0; i < 10; ++i) {
    std::ranges::shuffle(inputs, random);
    EXPECT_EQ(describe_scan(scan(inputs)), expected);
  }
}

TEST(Scan, CopiesOfAFileCountOnceAndTheFurthestIsTaken) {
  const TempDir dir;
  RankFileBuilder builder(dir / "live" / "rank-00000.db", identity_of_rank(0));
  builder.row(0, {{"loss", 1.0}}).seal();
  fs::create_directories(dir / "copy");
  fs::copy(dir / "live" / "rank-00000.db", dir / "copy" / "rank-00000.db");
  fs::copy(dir / "live" / "rank-00000.db-wal", dir / "copy" / "rank-00000.db-wal");
  builder.row(1, {{"loss", 1.0}});
  const ScanResult result = scan_all({dir.path()});
  ASSERT_EQ(result.experiments.size(), 1u);
  const auto segments = result.experiments[0].segments_of(0);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0]->path, dir / "live" / "rank-00000.db");
  EXPECT_EQ(segments[0]->info.rows, 2u);
}

// A byte of a tail record's payload: its checksum is wrong then.
void damage_tail(const fs::path& segment) {
  std::string bytes = test::read_file(segment);
  bytes[bytes.size() - 90] = static_cast<char>(bytes[bytes.size() - 90] ^ 0x40);
  test::write_file(segment, bytes);
}

TEST(Scan, DamageDoesNotMakeAnOlderCopyTheBetterOne) {
  const TempDir dir;
  RankFileBuilder builder(dir / "live" / "rank-00000.db", identity_of_rank(0));
  for (int i = 0; i < 20; ++i) builder.row(i, {{"loss", 1.0}});
  builder.seal();
  fs::create_directories(dir / "copy");
  for (const char* name : {"rank-00000.db", "rank-00000.db-wal"}) {
    fs::copy(dir / "live" / name, dir / "copy" / name);
  }
  for (int i = 20; i < 58; ++i) builder.row(i, {{"loss", 1.0}});
  damage_tail(builder.segment());
  const ScanResult result = scan_all({dir.path()});
  const auto segments = result.experiments.at(0).segments_of(0);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0]->path, dir / "live" / "rank-00000.db");
  EXPECT_GT(segments[0]->info.rows, 50u);
  EXPECT_FALSE(segments[0]->damage.empty());
}

TEST(Scan, DamageOfACopyThatIsLeftOutIsNamed) {
  const TempDir dir;
  RankFileBuilder builder(dir / "live" / "rank-00000.db", identity_of_rank(0));
  for (int i = 0; i < 20; ++i) builder.row(i, {{"loss", 1.0}});
  fs::copy(dir / "live", dir / "copy", fs::copy_options::recursive);
  damage_tail(dir / "copy" / builder.segment().filename());
  builder.row(20, {{"loss", 1.0}});
  const ScanResult result = scan_all({dir.path()});
  EXPECT_EQ(result.experiments.at(0).segments_of(0)[0]->info.rows, 21u);
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].path, dir / "copy" / "rank-00000.db");
  EXPECT_EQ(result.problems[0].code, ErrorCode::kDamaged);
  EXPECT_NE(result.problems[0].message.find("live/rank-00000.db"), std::string::npos)
      << result.problems[0].message;
}

TEST(Scan, RankStartedTwiceUnderOneTokenKeepsBothFiles) {
  const TempDir dir;
  write_rank(dir / "e", 0, 0, {"t", 0, {}}, {0});
  write_rank(dir / "e", 0, 1, {"t", 9, {}}, {1});
  const ScanResult result = scan_all({dir.path()});
  ASSERT_EQ(result.experiments[0].attempts.size(), 1u);
  EXPECT_EQ(result.experiments[0].segments_of(0).size(), 2u);
}

TEST(Scan, WhatCannotBeReadIsNamedAndTheRestIsFound) {
  const TempDir dir;
  const fs::path folder = dir / "p" / "e";
  write_rank(folder, 0, 0, {"t", 0, {}}, {0}, 4);
  test::write_file(folder / "rank-00001.db", "not a database at all");
  test::write_file(folder / "rank-00002.tail.0", encode_tail_header("t", 2));
  test::write_file(folder / "notes.db", "ignored: no rank file's name");
  const ScanResult result = scan_all({dir.path()});
  ASSERT_EQ(result.experiments.size(), 1u);
  EXPECT_EQ(result.experiments[0].missing_ranks(), (std::vector<int>{1, 2, 3}));
  ASSERT_EQ(result.problems.size(), 2u);
  EXPECT_EQ(result.problems[0].path, folder / "rank-00001.db");
  EXPECT_EQ(result.problems[0].code, ErrorCode::kNotOurs);
  EXPECT_EQ(result.problems[1].path, folder / "rank-00002.tail.0");
  EXPECT_EQ(result.problems[1].code, ErrorCode::kDamaged);
}

TEST(Scan, FoldersOfOthersAreNotEntered) {
  const TempDir dir;
  write_rank(dir / "p" / "e", 0, 0, {"t", 0, {}}, {0});
  Identity other = identity_of_rank(0);
  other.experiment = "hidden";
  RankFileBuilder(dir / "p" / ".hidden" / "rank-00000.db", other).finish();
  RankFileBuilder(dir / "p" / "e" / "checkpoints" / "rank-00000.db", other).finish();
  fs::create_directory_symlink(dir.path(), dir / "p" / "round and round");
  EXPECT_EQ(scan_all({dir.path()}).experiments.size(), 1u);
  EXPECT_EQ(scan_all({dir / "p" / ".hidden"}).experiments.size(), 1u) << "unless it is asked for";
}

TEST(Scan, MissingInputIsAnError) {
  const TempDir dir;
  try {
    (void)scan_all({dir / "absent"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
  EXPECT_TRUE(scan_all({dir.path()}).experiments.empty());
}

TEST(Experiment, OnlyALaterAttemptWithRowsAndAResumeStepSupersedes) {
  const TempDir dir;
  write_rank(dir / "e", 0, 0, {"a", 0, {}}, {0, 1, 2, 3, 4, 5});
  write_rank(dir / "e", 0, 1, {"b", 10, 4}, {4, 5, 6});
  write_rank(dir / "e", 0, 2, {"c", 20, 1}, {});    // died before its first row
  write_rank(dir / "e", 0, 3, {"d", 30, {}}, {9});  // continues nothing
  write_rank(dir / "e", 0, 4, {"e", 40, 6}, {6});
  const ScanResult result = scan_all({dir.path()});
  const Experiment& experiment = result.experiments.at(0);
  ASSERT_EQ(experiment.attempts.size(), 5u);
  EXPECT_EQ(experiment.superseded_from(0), 4);
  EXPECT_EQ(experiment.superseded_from(1), 6);
  EXPECT_EQ(experiment.superseded_from(2), 6);
  EXPECT_EQ(experiment.superseded_from(3), 6);
  EXPECT_FALSE(experiment.superseded_from(4));
}

class StateOf : public ::testing::Test {
 protected:
  // The state of rank 0's only file, `age_seconds` after its last sign of life.
  RunState state(Identity identity, std::int64_t age_seconds = 1) {
    const fs::path path = dir_ / ("e" + std::to_string(++files_)) / "rank-00000.db";
    RankFileBuilder builder(path, std::move(identity));
    builder.row(0, {{"loss", 1.0}});
    const ScanResult result = scan_all({path});
    const Experiment& experiment = result.experiments.at(0);
    return state_of(experiment, experiment.attempts[0].segments[0], kStartTimeNs + age_seconds * kSecondNs);
  }
  static Identity this_process() {
    Identity identity = identity_of_rank(0);
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    identity.host = name.data();
    identity.pid = ::getpid();
    std::ifstream stat("/proc/self/stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 2));  // field 3 comes first
    std::string field;
    for (int number = 3; number <= 22; ++number) fields >> field;
    identity.pid_start_ticks = std::stoull(field);
    return identity;
  }

 private:
  TempDir dir_;
  int files_ = 0;
};

TEST_F(StateOf, LivingProcessIsRunning) {
  EXPECT_EQ(state(this_process()), RunState::kRunning);
}

TEST_F(StateOf, GoneOrReusedPidOfThisHostIsCrashed) {
  Identity gone = this_process();
  gone.pid = 99'999'999;
  EXPECT_EQ(state(gone), RunState::kCrashed);
  Identity reused = this_process();
  reused.pid_start_ticks += 1;
  EXPECT_EQ(state(reused), RunState::kCrashed);
}

TEST_F(StateOf, ProcessOfAnotherHostIsJudgedByItsHeartbeat) {
  EXPECT_EQ(state(identity_of_rank(0), 599), RunState::kRunning);
  EXPECT_EQ(state(identity_of_rank(0), 601), RunState::kCrashed);
}

TEST_F(StateOf, EndRecordOrLaterAttemptDecides) {
  const TempDir dir;
  const auto write = [&](int number, const char* token, EndState state) {
    Identity identity = identity_of_rank(0);
    identity.launch_token = token;
    RankFileBuilder builder(dir / rank_file_name(0, number), identity, kStartTimeNs + number * kSecondNs);
    builder.row(0, {{"loss", 1.0}});
    builder.finish(state);
  };
  write(0, "a", EndState::kFailed);
  write(1, "b", EndState::kPreempted);
  Identity died = this_process();
  died.launch_token = "c";
  RankFileBuilder still_open(dir / rank_file_name(0, 2), died, kStartTimeNs + 2 * kSecondNs);
  write(3, "d", EndState::kFinished);
  const ScanResult result = scan_all({dir.path()});
  const Experiment& experiment = result.experiments.at(0);
  const RunState expected[] = {RunState::kFailed, RunState::kPreempted, RunState::kCrashed,
                               RunState::kFinished};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(state_of(experiment, experiment.attempts[i].segments[0], kStartTimeNs + kSecondNs), expected[i])
        << i;
  }
}

}  // namespace
}  // namespace ranklog
