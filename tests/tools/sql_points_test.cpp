#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "logs.hpp"
#include "plain_table.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using sql::SqlValue;
using test::ask;
using test::PlainDatabase;
using test::RankFileBuilder;
using test::SqlRows;
using test::TempDir;

constexpr int kRanks = 5;
constexpr int kAttempts = 2;
constexpr std::int64_t kResumeStep = 30;

// Two attempts of five ranks on two nodes with random rows of all kinds, in chunks of random sizes and the
// rest in the tail; and the same rows in a plain table, as the documentation of the columns has them.
class RandomLogs {
 public:
  explicit RandomLogs(unsigned seed) : random_(seed) {
    plain_.execute(
        "CREATE TABLE points(project TEXT, experiment TEXT, attempt INTEGER, rank INTEGER, local_rank "
        "INTEGER, "
        "node INTEGER, step INTEGER, time REAL, key TEXT, value, kind TEXT, text TEXT, time_ns INTEGER, "
        "sequence INTEGER, superseded INTEGER)");
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      for (int rank = 0; rank < kRanks; ++rank) write(attempt, rank);
    }
    catalog_ = test::open_logs(dir_.path());
    logs_ = std::make_unique<sql::Database>(catalog_);
  }

  PlainDatabase& plain() { return plain_; }
  sql::Database& logs() { return *logs_; }
  sql::Catalog& catalog() { return *catalog_; }
  int upto(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  template <std::size_t N>
  std::string pick(const std::string_view (&texts)[N]) {
    return std::string(texts[static_cast<std::size_t>(upto(N))]);
  }

 private:
  static Identity identity(int attempt, int rank) {
    Identity identity = test::identity_of_rank(rank, kRanks);
    identity.local_rank = rank % 3;
    identity.local_world_size = 3;
    identity.node = rank / 3;
    identity.launch_token = "launch " + std::to_string(attempt);
    if (attempt > 0) identity.resume_step = kResumeStep;
    return identity;
  }

  ValueView random_value() {
    constexpr std::string_view kTexts[] = {"", "abc", "NaN", "1.5", "it's"};
    switch (upto(9)) {
      case 0:
        return std::nan("");
      case 1:
        return upto(2) == 0 ? kInfinity : -kInfinity;
      case 2:
        return upto(1000) - 500;
      case 3:
        return std::numeric_limits<std::int64_t>::max() - upto(3);
      case 4:
        return upto(2) == 0;
      case 5:
        return kTexts[upto(5)];
      case 6:
        return upto(2) == 0 ? ValueView() : ValueView::json(R"([1,{"a":null}])");
      default:
        return upto(100000) / 1000.0 - 50;
    }
  }

  void insert(const Identity& identity, int attempt, std::int64_t start, const RankFileBuilder& file,
              std::int64_t step, const std::string& key, ValueView value) {
    const std::int64_t time_ns = start + static_cast<std::int64_t>(file.sequence()) * 1'000'000;
    SqlValue plain_value;
    std::string kind = "null";
    std::string text = "null";
    switch (value.kind()) {
      case ValueKind::kNull:
        break;
      case ValueKind::kFloat64: {
        const double number = value.as_double();
        plain_value = number;
        kind = std::isnan(number) ? "nan" : "float64";
        text = std::isnan(number) ? "NaN" : std::isinf(number) ? (number > 0 ? "Infinity" : "-Infinity") : "";
        break;
      }
      case ValueKind::kInt64:
        plain_value = value.as_int64();
        kind = "int64";
        text = std::to_string(value.as_int64());
        break;
      case ValueKind::kBool:
        plain_value = std::int64_t{value.as_bool() ? 1 : 0};
        kind = "bool";
        text = value.as_bool() ? "true" : "false";
        break;
      case ValueKind::kString:
      case ValueKind::kJson:
        plain_value = std::string(value.text());
        kind = value.kind() == ValueKind::kJson ? "json" : "string";
        text = std::string(value.text());
        break;
    }
    const bool superseded = attempt == 0 && step >= kResumeStep;
    plain_.run("INSERT INTO points VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
               {identity.project, identity.experiment, std::int64_t{attempt}, std::int64_t{identity.rank},
                std::int64_t{identity.local_rank}, std::int64_t{identity.node}, step,
                static_cast<double>(time_ns) / 1e9, key, plain_value, kind, text, time_ns,
                static_cast<std::int64_t>(file.sequence()), std::int64_t{superseded ? 1 : 0}});
  }

  // What the rank has logged so far at these steps is replaced, in whichever file it is.
  void rewind(const Identity& identity, int attempt, RankFileBuilder& file, std::int64_t step) {
    file.operation(Event{0, 0, step, std::string(kRewindEvent), "{}"});
    plain_.run("UPDATE points SET superseded = 1 WHERE rank = ? AND step >= ? AND attempt <= ?",
               {std::int64_t{identity.rank}, step, std::int64_t{attempt}});
  }

  void write(int attempt, int rank) {
    const Identity who = identity(attempt, rank);
    const std::int64_t start = test::kStartTimeNs + attempt * 3'600'000'000'000;
    RankFileBuilder file(test::rank_path(dir_.path(), who, attempt), who, start);
    constexpr std::string_view kKeys[] = {"loss", "Loss", "train.loss", "lr", "grad/norm", "größe"};
    const std::int64_t first = attempt == 0 ? 0 : kResumeStep;
    for (std::int64_t step = first; step < first + 50; ++step) {
      RankFileBuilder::Fields fields;
      for (const std::string_view key : kKeys) {
        if (upto(3) > 0) fields.emplace_back(std::string(key), random_value());
      }
      if (fields.empty()) continue;
      // Some steps repeat or go back.
      const std::int64_t logged = upto(10) == 0 ? std::max<std::int64_t>(first, step - 3) : step;
      file.row(logged, fields);
      for (const auto& [key, value] : fields) insert(who, attempt, start, file, logged, key, value);
      if (upto(20) == 0) file.seal();
      if (upto(40) == 0) rewind(who, attempt, file, step - upto(5));
    }
    if (rank % 2 == 0) file.finish();
  }

  TempDir dir_;
  std::mt19937 random_;
  PlainDatabase plain_;
  std::shared_ptr<sql::Catalog> catalog_;
  std::unique_ptr<sql::Database> logs_;
};

void expect_same(RandomLogs& logs, const std::string& sql, const std::string& plain_sql) {
  SqlRows expected = logs.plain().run(plain_sql);
  SqlRows actual = ask(logs.logs(), sql);
  if (sql.find("ORDER BY") == std::string::npos) {
    std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a < b; });
    std::sort(actual.begin(), actual.end(), [](const auto& a, const auto& b) { return a < b; });
  }
  ASSERT_EQ(actual.size(), expected.size()) << sql;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i], expected[i]) << sql << "\nrow " << i << ": " << test::show({actual[i]})
                                      << "instead of " << test::show({expected[i]});
  }
}

// The plain table has superseded rows too: a view leaves them out unless asked.
std::string on_plain(const std::string& sql, bool all_attempts = false) {
  std::string out = sql;
  const std::string from = "FROM points";
  const std::string with = all_attempts ? "FROM (SELECT *, 1 AS all_attempts FROM points) AS points"
                                        : "FROM (SELECT * FROM points WHERE superseded = 0) AS points";
  for (std::size_t at = 0; (at = out.find(from, at)) != std::string::npos; at += with.size()) {
    out.replace(at, from.size(), with);
  }
  return out;
}

constexpr const char* kColumns =
    "project, experiment, attempt, rank, local_rank, node, step, time, key, value, kind, time_ns, sequence, "
    "superseded";

TEST(SqlPoints, EveryQueryGivesWhatAPlainTableGives) {
  RandomLogs logs(1);
  const std::string columns = kColumns;
  for (const std::string& sql : {
           "SELECT " + columns + " FROM points",
           std::string("SELECT count(*), count(value), sum(rank) FROM points"),
           std::string("SELECT rank, count(*), min(step), max(step) FROM points GROUP BY rank"),
           std::string(
               "SELECT node, key, avg(value), max(value) FROM points WHERE kind IN ('float64', 'int64') "
               "GROUP BY node, key ORDER BY node, key"),
           std::string(
               "SELECT step, max(value) - min(value) FROM points WHERE key = 'loss' AND kind = 'float64' "
               "GROUP BY step ORDER BY step"),
           std::string("SELECT text FROM points WHERE kind <> 'float64' OR value = value / 2"),
           std::string("SELECT rank, min(step), count(*) FROM points WHERE kind = 'nan' GROUP BY rank"),
           std::string("SELECT rank, step, sum(value) OVER (PARTITION BY rank ORDER BY sequence) FROM points "
                       "WHERE key = 'lr' AND kind = 'float64' AND abs(value) < 100 ORDER BY rank, sequence"),
           std::string("SELECT DISTINCT key FROM points ORDER BY key"),
           std::string("SELECT count(*) FROM points WHERE key = 'LOSS' COLLATE NOCASE"),
           std::string("SELECT count(*) FROM points WHERE rank = '3'"),
           std::string("SELECT count(*) FROM points WHERE '3' = rank AND node = 1.0"),
           std::string("SELECT count(*) FROM points WHERE rank IN (1, 3, NULL) AND key IN ('loss', 'lr')"),
           std::string("SELECT count(*) FROM points WHERE rank IS 2 AND step IS NOT NULL"),
           std::string("SELECT count(*) FROM points WHERE key LIKE 'LOS_' OR key GLOB '*norm'"),
           std::string("SELECT count(*) FROM points WHERE NOT (rank = 1 AND step < 20)"),
           std::string("SELECT count(*) FROM points WHERE step BETWEEN 10.5 AND 20.5"),
           std::string("SELECT count(*) FROM points WHERE time > 1700000000.02 AND time <= 1700003600"),
           std::string("SELECT count(*) FROM points WHERE step > 9223372036854775806"),
           std::string("SELECT count(*) FROM points WHERE step <= 1e30 AND step > -1e30"),
           std::string("SELECT count(*) FROM points WHERE value = 9223372036854775807"),
           std::string("SELECT count(*) FROM points WHERE value > 1e308 OR value < -1e308"),
           std::string("SELECT count(*) FROM points WHERE typeof(value) = 'text' AND value GLOB '*a*'"),
           std::string("SELECT * FROM (SELECT rank, max(step) AS last FROM points GROUP BY rank) ORDER BY "
                       "last, rank"),
           std::string("WITH a AS (SELECT step, value FROM points WHERE rank = 0 AND key = 'loss') "
                       "SELECT a.step, a.value, b.value FROM a JOIN (SELECT * FROM points WHERE rank = 1 AND "
                       "key = 'loss') b ON a.step = b.step"),
       }) {
    expect_same(logs, sql, on_plain(sql));
  }
}

// A random condition on a column that is pushed down, with values of every kind.
std::string condition(RandomLogs& logs) {
  constexpr std::string_view kIntegers[] = {"rank", "local_rank", "node", "attempt", "step"};
  constexpr std::string_view kComparisons[] = {"=", "<", "<=", ">", ">=", "<>", "IS"};
  constexpr std::string_view kNumbers[] = {"0",  "1",  "2",   "3.0", "2.5",  "-1",
                                           "30", "41", "'2'", "'x'", "NULL", "1e300"};
  constexpr std::string_view kKeys[] = {"'loss'",  "'Loss'", "'lr'", "'train.loss'",
                                        "'größe'", "''",     "5",    "NULL"};
  constexpr std::string_view kGlobs[] = {"'l*'", "'*loss'", "'[a-k]*'", "'?r'", "'*'", "NULL"};
  switch (logs.upto(6)) {
    case 0:
      return "key = " + logs.pick(kKeys);
    case 1:
      return "key GLOB " + logs.pick(kGlobs);
    case 2:
      return "time " + logs.pick(kComparisons) + " 1700000000 + " + std::to_string(logs.upto(60)) +
             " / 1000.0";
    case 3:
      return "experiment " + logs.pick(kComparisons) + (logs.upto(2) == 0 ? " 'e'" : " 'f'");
    default:
      return logs.pick(kIntegers) + " " + logs.pick(kComparisons) + " " + logs.pick(kNumbers);
  }
}

TEST(SqlPoints, ConstraintsThatArePushedDownChangeNoResult) {
  RandomLogs logs(2);
  for (int i = 0; i < 250; ++i) {
    std::string where = condition(logs);
    for (int n = logs.upto(3); n > 0; --n) where += (logs.upto(4) == 0 ? " OR " : " AND ") + condition(logs);
    const bool all = logs.upto(3) == 0;
    const std::string sql = std::string("SELECT ") + kColumns + " FROM points WHERE (" + where + ")" +
                            (all ? " AND all_attempts = 1" : "");
    ASSERT_NO_FATAL_FAILURE(expect_same(logs, sql, on_plain(sql, all)));
  }
}

TEST(SqlPoints, SupersededRowsAreHiddenUntilAskedFor) {
  RandomLogs logs(7);
  const auto one = [&](const std::string& sql) {
    return std::get<std::int64_t>(ask(logs.logs(), sql).at(0).at(0));
  };
  const auto plain = [&](const std::string& sql) {
    return std::get<std::int64_t>(logs.plain().run(sql).at(0).at(0));
  };
  const std::int64_t all = plain("SELECT count(*) FROM points");
  const std::int64_t superseded = plain("SELECT count(*) FROM points WHERE superseded = 1");
  ASSERT_GT(superseded, 0);
  EXPECT_EQ(one("SELECT count(*) FROM points"), all - superseded);
  EXPECT_EQ(one("SELECT count(*) FROM points WHERE all_attempts = 1"), all);
  EXPECT_EQ(one("SELECT count(*) FROM points WHERE all_attempts = 1 AND superseded = 1"), superseded);
  EXPECT_EQ(one("SELECT count(*) FROM points WHERE all_attempts = 1 AND attempt = 0 AND step >= 30"),
            one("SELECT count(*) FROM points WHERE all_attempts = 1 AND attempt = 0 AND step >= 30 AND "
                "superseded = 1"));
  EXPECT_EQ(one("SELECT count(*) FROM points WHERE all_attempts = 0"), all - superseded);
  sql::Database every(test::open_logs(logs.catalog().experiments().front().folder), {true});
  EXPECT_EQ(std::get<std::int64_t>(ask(every, "SELECT count(*) FROM points")[0][0]), all);
}

}  // namespace
}  // namespace ranklog
