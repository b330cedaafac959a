#include <gtest/gtest.h>

#include <map>

#include "ranklog/schema/history.hpp"
#include "ranklog/schema/supersession.hpp"
#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using test::identity_of_rank;
using test::RankFileBuilder;
using test::TempDir;

constexpr std::int64_t kHourNs = 3600 * std::int64_t{1'000'000'000};

Event rewind_to(std::int64_t step) {
  return Event{0, 0, step, std::string(kRewindEvent), "{}"};
}

Identity launch(const std::string& token, std::optional<std::int64_t> resume_step = {}, int rank = 0) {
  Identity identity = identity_of_rank(rank, 2);
  identity.launch_token = token;
  identity.resume_step = resume_step;
  return identity;
}

void log(RankFileBuilder& builder, int first, int last, int value) {
  for (int step = first; step <= last; ++step) builder.row(step, {{"x", value}});
}

// Step -> value of "x".
std::map<std::int64_t, std::int64_t> history_of(const fs::path& folder, HistoryCounts& counts, int rank = 0) {
  const ScanResult found = scan(std::vector<fs::path>{folder});
  RankHistory history(found.experiments.at(0), rank);
  std::map<std::int64_t, std::int64_t> values;
  HistoryRow row;
  while (history.next(row)) values[row.step] = row.cells.at(0).value.as_int64();
  counts = history.counts();
  return values;
}

TEST(Rewind, RowsBeforeItAtLaterStepsAreReplacedAndCounted) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", launch("a"));
  log(builder, 0, 9, 1);
  builder.operation(rewind_to(4));
  log(builder, 4, 6, 2);
  for (const bool sealed : {false, true}) {
    if (sealed) builder.seal();
    HistoryCounts counts;
    const auto values = history_of(dir.path(), counts);
    ASSERT_EQ(values.size(), 7u) << "steps 7 to 9 are gone";
    for (const auto& [step, value] : values) EXPECT_EQ(value, step < 4 ? 1 : 2) << step;
    EXPECT_EQ(counts.rows, 13u);
    EXPECT_EQ(counts.superseded_rows, 6u);
    EXPECT_EQ(counts.backward_steps, 0u) << "going back was declared";
  }
  EXPECT_EQ(RankFile::open(builder.path()).info().rewind_step, 4);
}

TEST(Rewind, SeveralReachAsFarAsEachSays) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", launch("a"));
  log(builder, 0, 9, 1);
  builder.operation(rewind_to(2)).seal();
  log(builder, 2, 8, 2);
  builder.operation(rewind_to(6)).operation(rewind_to(5));
  log(builder, 5, 5, 3);
  builder.operation(Event{0, 0, {}, "rewind", "{}"}).operation(Event{0, 0, 0, "another kind", "{}"});
  HistoryCounts counts;
  const auto values = history_of(dir.path(), counts);
  const std::map<std::int64_t, std::int64_t> expected = {{0, 1}, {1, 1}, {2, 2}, {3, 2}, {4, 2}, {5, 3}};
  EXPECT_EQ(values, expected);
  EXPECT_EQ(counts.superseded_rows, 8u + 4u);
}

TEST(Rewind, ReachesBackIntoEarlierFilesOfTheRankAlone) {
  const TempDir dir;
  RankFileBuilder first(dir / "rank-00000.db", launch("a"));
  log(first, 0, 19, 1);
  first.finish();
  RankFileBuilder other(dir / "rank-00001.db", launch("a", {}, 1));
  log(other, 0, 19, 1);
  other.finish();
  RankFileBuilder second(dir / "rank-00000.1.db", launch("b", 15), test::kStartTimeNs + kHourNs);
  log(second, 15, 17, 2);
  second.operation(rewind_to(10));
  log(second, 10, 11, 3);
  HistoryCounts counts;
  auto values = history_of(dir.path(), counts);
  ASSERT_EQ(values.size(), 12u);
  for (const auto& [step, value] : values) EXPECT_EQ(value, step < 10 ? 1 : 3) << step;
  EXPECT_EQ(counts.superseded_rows, 10u + 3u);
  values = history_of(dir.path(), counts, 1);
  EXPECT_EQ(values.size(), 15u) << "rank 1 was not rewound; the second attempt begins at 15";

  const ScanResult found = scan(std::vector<fs::path>{dir.path()});
  const Experiment& experiment = found.experiments.at(0);
  EXPECT_EQ(experiment.superseded_from(0, *experiment.segments_of(0)[0]), 10);
  EXPECT_EQ(experiment.superseded_from(1, *experiment.segments_of(0)[1]), std::nullopt);
  EXPECT_EQ(experiment.superseded_from(0, *experiment.segments_of(1)[0]), 15);
}

TEST(Rewind, OfRankStartedTwiceUnderOneTokenReachesTheEarlierFile) {
  const TempDir dir;
  RankFileBuilder first(dir / "rank-00000.db", launch("a"));
  log(first, 0, 9, 1);
  RankFileBuilder second(dir / "rank-00000.1.db", launch("a"), test::kStartTimeNs + kHourNs);
  second.operation(rewind_to(5));
  HistoryCounts counts;
  EXPECT_EQ(history_of(dir.path(), counts).size(), 5u);
  EXPECT_EQ(counts.superseded_rows, 5u);
}

TEST(Supersession, GroupRangesTellWhetherAllOrNoneOfTheirRowsAreCovered) {
  const Event rewind = [] {
    Event event = rewind_to(10);
    event.sequence = 100;
    return event;
  }();
  const Supersession superseded(50, {&rewind, 1});
  EXPECT_TRUE(superseded.covers(99, 10));
  EXPECT_FALSE(superseded.covers(99, 9));
  EXPECT_FALSE(superseded.covers(100, 10)) << "the rewind itself stays";
  EXPECT_TRUE(superseded.covers(101, 50));
  RowGroupInfo group;
  group.first_sequence = 90;
  group.last_sequence = 99;
  group.min_step = 10;
  group.max_step = 20;
  EXPECT_TRUE(superseded.covers_all(group));
  group.last_sequence = 110;
  EXPECT_FALSE(superseded.covers_all(group));
  EXPECT_TRUE(superseded.may_cover(group));
  group.max_step = 9;
  group.min_step = 1;
  EXPECT_FALSE(superseded.may_cover(group));
  EXPECT_FALSE(Supersession().covers(1, 1));
}

}  // namespace
}  // namespace ranklog
