#include "ranklog/schema/history.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "ranklog/schema/error.hpp"
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

constexpr std::int64_t kHourNs = 3600 * std::int64_t{1'000'000'000};

Identity launch(const std::string& token, std::optional<std::int64_t> resume_step = {}, int rank = 0) {
  Identity identity = identity_of_rank(rank, 2);
  identity.launch_token = token;
  identity.resume_step = resume_step;
  return identity;
}

// Step -> key -> value, and what was counted.
struct Merged {
  std::map<std::int64_t, std::map<std::string, Value>> rows;
  std::vector<std::int64_t> steps;  // in the order in which they came
  std::vector<int> attempts;
  HistoryCounts counts;
  std::vector<Damage> damage;
};

Merged merge(const std::vector<fs::path>& inputs, int rank = 0) {
  const ScanResult found = scan(inputs);
  EXPECT_EQ(found.experiments.size(), 1u);
  RankHistory history(found.experiments.at(0), rank);
  Merged merged;
  HistoryRow row;
  while (history.next(row)) {
    merged.steps.push_back(row.step);
    merged.attempts.push_back(row.attempt);
    auto& values = merged.rows[row.step];
    EXPECT_TRUE(values.empty()) << "step " << row.step << " twice";
    EXPECT_TRUE(std::ranges::is_sorted(row.cells, {}, &HistoryCell::key));
    for (const HistoryCell& cell : row.cells) {
      EXPECT_TRUE(values.emplace(history.keys().at(cell.key).display(), Value(cell.value)).second);
    }
  }
  EXPECT_FALSE(history.next(row)) << "the end stays the end";
  EXPECT_TRUE(std::ranges::is_sorted(merged.steps));
  merged.counts = history.counts();
  merged.damage = history.damage();
  EXPECT_EQ(merged.counts.steps, merged.steps.size());
  return merged;
}

TEST(RankHistory, FourPiecesOfOneJobAreOneHistoryInAnyOrder) {
  const TempDir dir;
  const std::pair<int, int> pieces[] = {{0, 7}, {8, 19}, {20, 31}, {32, 36}};
  std::vector<fs::path> paths;
  for (int i = 0; i < 4; ++i) {
    const std::optional<std::int64_t> resume =
        i == 0 ? std::nullopt : std::optional<std::int64_t>(pieces[i].first);
    paths.push_back(dir / ("piece" + std::to_string(i)) / "rank-00000.db");
    RankFileBuilder builder(paths.back(), launch("allocation " + std::to_string(i), resume),
                            kStartTimeNs + i * (3 * kHourNs));
    for (int step = pieces[i].first; step <= pieces[i].second; ++step)
      builder.row(step, {{"loss", step * 0.5}});
    builder.finish();
  }
  std::ranges::sort(paths);
  do {
    const Merged merged = merge(paths);
    ASSERT_EQ(merged.steps.size(), 37u);
    for (std::int64_t step = 0; step < 37; ++step) {
      EXPECT_EQ(merged.rows.at(step).at("loss").view().as_double(), static_cast<double>(step) * 0.5);
    }
    EXPECT_EQ(merged.counts.superseded_rows, 0u);
  } while (std::ranges::next_permutation(paths).found);
}

TEST(RankHistory, ResumeFromACheckpointSupersedesWhatCameAfterIt) {
  const TempDir dir;
  RankFileBuilder first(dir / "rank-00000.db", launch("a"), kStartTimeNs);
  for (int step = 0; step < 25'000; ++step) {
    first.row(step, {{"loss", step}});
    if (step % 4096 == 4095) first.seal();
  }
  RankFileBuilder second(dir / "rank-00000.1.db", launch("b", 20'000), kStartTimeNs + kHourNs);
  for (int step = 20'000; step <= 30'000; ++step) {
    second.row(step, {{"loss", -step}});
    if (step % 4096 == 4095) second.seal();
  }
  second.finish();
  const Merged merged = merge({dir.path()});
  ASSERT_EQ(merged.steps.size(), 30'001u);
  EXPECT_EQ(merged.steps.front(), 0);
  EXPECT_EQ(merged.steps.back(), 30'000);
  for (const std::int64_t step : merged.steps) {
    const std::int64_t loss = merged.rows.at(step).at("loss").view().as_int64();
    ASSERT_EQ(loss, step < 20'000 ? step : -step);
    ASSERT_EQ(merged.attempts[static_cast<std::size_t>(step)], step < 20'000 ? 0 : 1);
  }
  EXPECT_EQ(merged.counts.rows, 35'001u);
  EXPECT_EQ(merged.counts.superseded_rows, 5'000u);
  EXPECT_EQ(merged.counts.backward_steps, 0u);
}

TEST(RankHistory, SupersedingIsOfTheLaunchNotOfTheRank) {
  const TempDir dir;
  RankFileBuilder(dir / "rank-00000.db", launch("a"))
      .row(0, {{"x", 1}})
      .row(1, {{"x", 1}})
      .row(2, {{"x", 1}})
      .finish();
  RankFileBuilder(dir / "rank-00001.db", launch("a", {}, 1)).row(0, {{"x", 1}}).row(1, {{"x", 1}}).finish();
  // In the second launch only rank 0 has rows: rank 1's old ones are superseded all the same.
  RankFileBuilder(dir / "rank-00000.1.db", launch("b", 1), kStartTimeNs + kHourNs)
      .row(1, {{"x", 2}})
      .finish();
  RankFileBuilder(dir / "rank-00001.1.db", launch("b", 1, 1), kStartTimeNs + kHourNs).finish();
  EXPECT_EQ(merge({dir.path()}, 0).steps, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(merge({dir.path()}, 1).steps, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(merge({dir.path()}, 1).counts.superseded_rows, 1u);
  EXPECT_TRUE(merge({dir.path()}, 7).steps.empty()) << "a rank without files has no rows";
}

TEST(RankHistory, CallsOfOneStepMakeOneRowAndTheLaterValueWins) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", launch("a"));
  builder.row(5, {{"loss", 1.0}, {"text", "early"}});
  builder.row(5, {{"accuracy", 0.5}});
  builder.seal();
  builder.row(5, {{"text", "late"}, {"more", nullptr}});
  builder.row(6, {{"loss", 2.0}});
  const Merged merged = merge({dir.path()});
  ASSERT_EQ(merged.steps.size(), 2u);
  const auto& values = merged.rows.at(5);
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values.at("loss").view().as_double(), 1.0);
  EXPECT_EQ(values.at("accuracy").view().as_double(), 0.5);
  EXPECT_EQ(values.at("text").view().text(), "late");
  EXPECT_EQ(values.at("more").view().kind(), ValueKind::kNull);
  EXPECT_EQ(merged.counts.backward_steps, 0u);
}

TEST(RankHistory, RowTellsTimeAndAttemptOfItsLastCall) {
  const TempDir dir;
  RankFileBuilder(dir / "rank-00000.db", launch("a")).row(0, {{"x", 1}}).row(0, {{"y", 1}}).finish();
  const ScanResult found = scan(std::vector<fs::path>{dir.path()});
  RankHistory history(found.experiments.at(0), 0);
  HistoryRow row;
  ASSERT_TRUE(history.next(row));
  EXPECT_EQ(row.time_ns, kStartTimeNs + 2'000'000);
  EXPECT_EQ(row.attempt, 0);
}

TEST(RankHistory, StepsInAnyOrderAreSortedAndCounted) {
  const TempDir dir;
  std::mt19937 random(9);
  std::vector<std::int64_t> steps(6000);
  std::iota(steps.begin(), steps.end(), -3000);
  std::ranges::shuffle(steps, random);
  std::uint64_t backward = 0;
  std::int64_t highest = steps.front();
  RankFileBuilder builder(dir / "rank-00000.db", launch("a"));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    backward += steps[i] < highest;
    highest = std::max(highest, steps[i]);
    builder.row(steps[i], {{i % 3 == 0 ? "a" : "b", steps[i]}});
    if (i % 500 == 499) builder.seal();
  }
  const Merged merged = merge({dir.path()});
  EXPECT_EQ(merged.steps.size(), 6000u);
  for (const auto& [step, values] : merged.rows) EXPECT_EQ(values.begin()->second.view().as_int64(), step);
  EXPECT_EQ(merged.counts.backward_steps, backward);
}

TEST(RankHistory, FewBackwardStepsInALongHistoryAreCounted) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", launch("a"));
  for (int i = 0; i < 20'000; ++i) {
    const bool back = i == 9'000 || i == 15'000 || i == 15'001;
    builder.row(back ? i - 7'000 : i, {{"x", i}});
    if (i % 1000 == 999) builder.seal();
  }
  const Merged merged = merge({dir.path()});
  EXPECT_EQ(merged.counts.backward_steps, 3u);
  EXPECT_EQ(merged.steps.size(), 20'000u - 3u);
  EXPECT_EQ(merged.rows.at(2'000).at("x").view().as_int64(), 9'000) << "the later value";
}

TEST(RankHistory, StepsBeyondTwoToThe31AndTwoToThe53StayExact) {
  const TempDir dir;
  const std::vector<std::int64_t> steps = {2147483646,       2147483647, 2147483648,
                                           9007199254740993, INT64_MAX,  INT64_MIN};
  RankFileBuilder builder(dir / "rank-00000.db", launch("a"));
  for (const std::int64_t step : steps) builder.row(step, {{"x", step}});
  builder.finish();
  const Merged merged = merge({dir.path()});
  ASSERT_EQ(merged.steps.size(), steps.size());
  for (const std::int64_t step : steps) EXPECT_EQ(merged.rows.at(step).at("x").view().as_int64(), step);
}

TEST(RankHistory, KeysOfAllFilesComeInOrderOfFirstAppearance) {
  const TempDir dir;
  RankFileBuilder(dir / "rank-00000.db", launch("a")).row(0, {{"b", 1}, {"a.x", 1}}).finish();
  RankFileBuilder(dir / "rank-00000.1.db", launch("b"), kStartTimeNs + kHourNs)
      .row(1, {{"a\\.x", 2}, {"b", 2}, {"c", 2}})
      .finish();
  const ScanResult found = scan(std::vector<fs::path>{dir.path()});
  RankHistory history(found.experiments.at(0), 0);
  std::vector<std::string> keys;
  for (const KeyPath& key : history.keys()) keys.push_back(key.display());
  EXPECT_EQ(keys, (std::vector<std::string>{"b", "a.x", "a\\.x", "c"}));
  const Merged merged = merge({dir.path()});
  EXPECT_EQ(merged.rows.at(1).at("b").view().as_int64(), 2);
}

TEST(RankHistory, DamagedChunkIsLeftOutAndNamed) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", launch("a"));
  for (int step = 0; step < 30; ++step) {
    builder.row(step, {{"x", step}});
    if (step % 10 == 9) builder.seal();
  }
  builder.finish();
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open((dir / "rank-00000.db").c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(connection, "UPDATE chunk SET data = zeroblob(50) WHERE id = 2", nullptr, nullptr,
                         nullptr),
            SQLITE_OK);
  sqlite3_close(connection);
  const Merged merged = merge({dir.path()});
  EXPECT_EQ(merged.steps.size(), 20u);
  EXPECT_EQ(merged.rows.count(15), 0u);
  ASSERT_EQ(merged.damage.size(), 1u);
  EXPECT_EQ(merged.damage[0].place, "rank-00000.db, chunk 2");
}

TEST(RankHistory, FileThatVanishedIsAnError) {
  const TempDir dir;
  RankFileBuilder(dir / "rank-00000.db", launch("a")).row(0, {{"x", 1}}).finish();
  const ScanResult found = scan(std::vector<fs::path>{dir.path()});
  fs::remove(dir / "rank-00000.db");
  EXPECT_THROW(RankHistory(found.experiments.at(0), 0), Error);
}

}  // namespace
}  // namespace ranklog
