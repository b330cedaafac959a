// query and plot, as their user meets them.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ranklog_program.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
using nlohmann::json;
using test::holds;
using test::lines_in;
using test::now_ns;
using test::Ran;
using test::RankFileBuilder;
using test::RanklogProgram;

TEST_F(RanklogProgram, QueryPrintsTheSameRowsInEveryFormat) {
  write("e", {0, 1, 2, 3}, 4);
  const std::string sql =
      "SELECT rank, count(*) AS steps, max(value) AS most FROM points WHERE key = 'loss' GROUP BY rank";
  const Ran table = run({"query", sql});
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_EQ(table.out,
            "rank  steps  most\n"
            "   0     20     2\n"
            "   1     20     3\n"
            "   2     20     4\n"
            "   3     20     5\n");
  EXPECT_EQ(run({"query", "--csv", sql}).out, "rank,steps,most\n0,20,2\n1,20,3\n2,20,4\n3,20,5\n");
  EXPECT_EQ(run({"query", "--ndjson", sql + " LIMIT 1"}).out, "{\"rank\":0,\"steps\":20,\"most\":2}\n");
  EXPECT_EQ(json::parse(run({"query", "--json", sql}).out)[3],
            json({{"rank", 3}, {"steps", 20}, {"most", 5.0}}));
  EXPECT_EQ(run({"query", "--json", "--csv", sql}).status, 2);
}

TEST_F(RanklogProgram, QueryMistakesGetOneLineAndAHint) {
  write("e", {0}, 1);
  const auto hint = [&](const std::string& sql) {
    const Ran ran = run({"query", sql});
    EXPECT_EQ(ran.status, 2) << sql;
    EXPECT_EQ(ran.out, "") << sql;
    EXPECT_EQ(lines_in(ran.err), 1) << ran.err;
    return ran.err;
  };
  EXPECT_TRUE(holds(hint("SELECT * FORM points"), "near \"FORM\""));
  EXPECT_TRUE(holds(hint("SELECT * FROM point"), "did you mean points?"));
  EXPECT_TRUE(holds(hint("SELECT * FROM nothing_like_it"), "the tables are points, history"));
  EXPECT_TRUE(holds(hint("SELECT rnk FROM points"), "did you mean rank?"));
  EXPECT_TRUE(holds(hint("SELECT loss FROM points"), "WHERE key = 'loss'"));
  EXPECT_TRUE(holds(hint("SELECT value FROM points WHERE key = \"loss\""), "WHERE key = 'loss'"));
  EXPECT_TRUE(holds(hint("SELECT \"los\" FROM history"), "no such column"));
  EXPECT_TRUE(holds(hint("DELETE FROM points"), "only be read"));
  EXPECT_TRUE(holds(hint("ATTACH 'x.db' AS x"), "only be read"));
  EXPECT_TRUE(holds(hint(""), "SQL is missing"));
  EXPECT_FALSE(fs::exists(dir_ / "x.db"));
}

TEST_F(RanklogProgram, QuerySchemaListsTablesAndColumns) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"query", "--schema"}, {"query", ".schema"}}) {
    const Ran ran = run(arguments);  // needs no logs
    EXPECT_EQ(ran.status, 0);
    for (const char* part :
         {"points", "history", "series", "runs", "config", "events", "artifacts", "local_rank"}) {
      EXPECT_TRUE(holds(ran.out, part)) << part;
    }
  }
  EXPECT_EQ(json::parse(run({"query", "--schema", "--json"}).out).size(), 7u);
}

TEST_F(RanklogProgram, ExperimentsAreChosenById) {
  write("first", {0}, 1);
  write("second", {0}, 1);
  const std::string sql = "SELECT DISTINCT experiment FROM points ORDER BY experiment";
  EXPECT_EQ(run({"query", "--csv", sql}).out, "experiment\nfirst\nsecond\n");
  EXPECT_EQ(run({"query", "--csv", "-e", "sec*", sql}).out, "experiment\nsecond\n");
  const Ran wrong = run({"ls", "-e", "secnd"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_TRUE(holds(wrong.err, "did you mean second?")) << wrong.err;
  const Ran plot = run({"plot", "loss"});
  EXPECT_EQ(plot.status, 0);
  EXPECT_TRUE(holds(plot.err, "of 2 experiments, the newest is shown: second")) << plot.err;
  const Ran both = run({"plot", "loss", "-e", "*"});
  EXPECT_TRUE(holds(both.out, "first rank 0") && holds(both.out, "second rank 0")) << both.out;
}

TEST_F(RanklogProgram, PlotShowsEveryRankWithALegend) {
  write("e", {0, 1, 2, 3}, 4);
  const Ran ran = run({"plot", "loss", "--width", "70", "--height", "20"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_LE(lines_in(ran.out), 20) << ran.out;
  EXPECT_TRUE(holds(ran.out, "loss  digits/e")) << ran.out;
  EXPECT_TRUE(holds(ran.out, "● rank 0  ○ rank 1  ■ rank 2  □ rank 3")) << ran.out;
  EXPECT_TRUE(holds(ran.out, "80 points")) << ran.out;
  EXPECT_FALSE(holds(ran.out, "\x1b")) << "no colours into a pipe";
  const Ran some = run({"plot", "loss", "--ranks", "1,3", "--steps", "5:9"});
  EXPECT_TRUE(holds(some.out, "10 points")) << some.out;
  EXPECT_FALSE(holds(some.out, "rank 0")) << some.out;
  EXPECT_TRUE(holds(run({"plot", "loss", "--color", "always"}).out, "\x1b[36m"));
  EXPECT_FALSE(holds(run({"plot", "loss"}, {{"NO_COLOR", "1"}}).out, "\x1b"));
  const Ran ascii = run({"plot", "loss", "--ascii"});
  for (const char c : ascii.out) ASSERT_LT(static_cast<unsigned char>(c), 0x80) << ascii.out;
}

TEST_F(RanklogProgram, PlotTakesSeveralKeysAndAttemptsAsOneCurve) {
  Identity who = identity("e", 0, 1);
  {
    RankFileBuilder file(path_of(who), who, now_ns());
    for (int step = 0; step < 10; ++step) file.row(step, {{"loss", 1.0}, {"lr", 2.0}});
  }
  who.launch_token = "again";
  who.resume_step = 5;
  RankFileBuilder file(path_of(who, 1), who, now_ns() + 1'000'000);
  for (int step = 5; step < 15; ++step) file.row(step, {{"loss", 3.0}});
  file.row(14, {{"loss", 4.0}});  // the later value of a step counts
  file.finish();
  const Ran ran = run({"plot", "loss", "-k", "lr", "--height", "15"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(holds(ran.out, "loss rank 0") && holds(ran.out, "lr rank 0")) << ran.out;
  EXPECT_TRUE(holds(ran.out, "20 points")) << ran.out;  // loss: 15 steps; lr: 5 that stand
}

TEST_F(RanklogProgram, PlotCountsWhatItCannotDraw) {
  const Identity who = identity("e", 0, 1);
  RankFileBuilder file(path_of(who), who, now_ns());
  for (int step = 0; step < 50; ++step) file.row(step, {{"loss", step % 5 == 0 ? std::nan("") : 1.0 * step}});
  file.row(50, {{"loss", kInfinity}}).row(51, {{"loss", "text"}}).finish();
  const Ran ran = run({"plot", "loss"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(holds(
      ran.out, "40 points, steps 1 to 49, values 1 to 49; not drawn: 10 NaN, 1 infinite, 1 not a number"))
      << ran.out;
  const Ran none = run({"plot", "loss", "--steps", "50:"});
  EXPECT_EQ(none.status, 1);
  EXPECT_TRUE(holds(none.err, "nothing to draw")) << none.err;
}

TEST_F(RanklogProgram, PlotOfAnUnknownKeySuggestsTheNearest) {
  write("e", {0}, 1);
  const Ran ran = run({"plot", "los"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(holds(ran.err, "did you mean loss?")) << ran.err;
  EXPECT_TRUE(holds(ran.err, "keys here: loss, train/lr")) << ran.err;
  const Ran rank = run({"plot", "loss", "--ranks", "7"});
  EXPECT_EQ(rank.status, 1);
  EXPECT_EQ(run({"plot", "loss", "--ranks", "x"}).status, 2);
  EXPECT_EQ(run({"plot", "loss", "--smooth", "1.5"}).status, 2);
  EXPECT_EQ(run({"plot", "loss", "--width", "5"}).status, 2);
}

TEST_F(RanklogProgram, PlotOfManyRanksShowsAFewAndSaysSo) {
  std::vector<int> ranks;
  for (int rank = 0; rank < 20; ++rank) ranks.push_back(rank);
  write("e", ranks, 20);
  const Ran ran = run({"plot", "loss"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(holds(ran.err, "of 20 ranks, these are shown: 0,2,5,8,10,13,16,19")) << ran.err;
  EXPECT_TRUE(holds(ran.out, "160 points")) << ran.out;
}

TEST_F(RanklogProgram, FileCutShortIsMarkedAndIsTheOnlyThingWrong) {
  Identity who = identity("cut", 0, 2);
  RankFileBuilder file(path_of(who), who, now_ns());
  for (int step = 0; step < 5000; ++step) file.row(step, {{"loss", 1.0 / (step + 3)}});
  file.finish();
  write("cut", {1}, 2);
  fs::resize_file(path_of(who), fs::file_size(path_of(who)) - 8192);
  const Ran ran = run({"ls"});
  EXPECT_EQ(ran.status, 5);
  EXPECT_TRUE(holds(ran.out, "1 damaged")) << ran.out;
  EXPECT_TRUE(holds(ran.err, "rank-00000.db: database: it is cut short, or its pages contradict each other"))
      << ran.err;
  const json document = json::parse(run({"ls", "-l", "--json"}).out);
  EXPECT_EQ(document["experiments"][0]["damaged_files"], 1);
  EXPECT_EQ(document["experiments"][0]["files"][0]["damage"].size(), 1U);
  EXPECT_EQ(document["experiments"][0]["files"][1]["damage"].size(), 0U);
}

TEST_F(RanklogProgram, WhatAFailingStatementPrintedIsAWholeDocument) {
  write("e", {0}, 1);
  const std::string sql =
      "SELECT CASE WHEN step < 2 THEN step ELSE abs(-9223372036854775807 - 1) END AS x "
      "FROM points WHERE key = 'loss'";
  const Ran array = run({"query", "--json", sql});
  EXPECT_EQ(array.status, 2);
  EXPECT_EQ(json::parse(array.out), json({{{"x", 0}}, {{"x", 1}}})) << array.out;
  EXPECT_TRUE(holds(array.err, "integer overflow")) << array.err;
  EXPECT_EQ(lines_in(array.err), 1) << array.err;
  for (const char* format : {"--csv", "--ndjson", "--color=auto"}) {
    const Ran ran = run({"query", format, sql});
    EXPECT_EQ(ran.status, 2) << format;
    EXPECT_TRUE(holds(ran.out, "1")) << format << ran.out;
    EXPECT_EQ(ran.err, array.err) << format;
  }
  // Before the first row there is room for the error.
  const Ran none = run({"query", "--json", "SELECT abs(-9223372036854775807 - 1)"});
  EXPECT_EQ(json::parse(none.out)["exit_status"], 2) << none.out;
}

TEST_F(RanklogProgram, MoreKeysThanHistoryHasColumnsAreToldOf) {
  const Identity who = identity("e", 0, 1);
  std::vector<std::string> names;
  for (int i = 0; i < 1903; ++i) names.push_back(std::string("key").append(std::to_string(i)));
  RankFileBuilder::Fields fields;
  for (const std::string& name : names) fields.emplace_back(name, ValueView(std::int64_t{1}));
  RankFileBuilder(path_of(who), who, now_ns()).row(0, fields).finish();
  const Ran ran = run({"query", "--csv", "SELECT step, key1899 FROM history"});
  EXPECT_EQ(ran.out, "step,key1899\n0,1\n");
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(holds(ran.err, "3 keys")) << ran.err;
  EXPECT_TRUE(holds(ran.err, "key1900")) << ran.err;
  EXPECT_EQ(lines_in(ran.err), 1) << ran.err;
  // Nobody is told who asks for something else.
  EXPECT_EQ(run({"query", "SELECT count(*) FROM points"}).status, 0);
}

}  // namespace
}  // namespace ranklog
