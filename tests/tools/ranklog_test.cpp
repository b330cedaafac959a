// The program as its user meets it: what it prints and how it ends.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "logs.hpp"
#include "plain_table.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace fs = std::filesystem;
using nlohmann::json;
using test::identity_of_rank;
using test::RankFileBuilder;
using test::TempDir;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

int lines_in(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

struct Ran {
  int status = -1;
  std::string out, err;
};

class RanklogProgram : public ::testing::Test {
 protected:
  // In the test's folder, with none of the variables that the program looks at but those given.
  Ran run(const test::Arguments& arguments, const test::Variables& variables = {}) {
    test::Arguments words{"-C", dir_.path().string(), RANKLOG_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    test::Variables environment{
        {"RANKLOG_DIR", ""}, {"WANDB_DIR", ""}, {"NO_COLOR", ""}, {"COLUMNS", ""}, {"LINES", ""}};
    for (const auto& [name, value] : variables) environment[name] = value;
    test::Process process("/usr/bin/env", words, environment);
    const int status = process.wait();
    return {status, process.output(), process.errors()};
  }

  Identity identity(const std::string& experiment, int rank, int world_size) {
    Identity who = identity_of_rank(rank, world_size);
    who.project = "digits";
    who.experiment = experiment;
    who.group = "demo";
    return who;
  }

  fs::path path_of(const Identity& who, int number = 0) {
    return test::rank_path(dir_ / "ranklog", who, number);
  }

  // `ranks` of `world_size` ranks with 20 steps of loss each.
  void write(const std::string& experiment, const std::vector<int>& ranks, int world_size,
             std::optional<EndState> end = EndState::kFinished) {
    for (const int rank : ranks) {
      const Identity who = identity(experiment, rank, world_size);
      RankFileBuilder file(path_of(who), who, now_ns());
      for (int step = 0; step < 20; ++step) {
        file.row(step, {{"loss", 2.0 / (1 + step) + rank}, {"train/lr", 0.1}});
      }
      if (end) file.finish(*end, *end == EndState::kFinished ? 0 : 1);
    }
  }

  TempDir dir_;
};

TEST_F(RanklogProgram, HelpNamesEveryCommandAndTheExitStatuses) {
  const Ran ran = run({"--help"});
  EXPECT_EQ(ran.status, 0);
  for (const char* part :
       {"ls", "show", "query", "plot", "check", "compact", "snapshot", "Exit status", "RANKLOG_DIR"}) {
    EXPECT_TRUE(holds(ran.out, part)) << part;
  }
  for (const char* command : {"ls", "show", "query", "plot", "check", "compact", "snapshot"}) {
    const Ran help = run({command, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_TRUE(holds(help.out, "Example")) << command;
  }
  EXPECT_EQ(run({"--version"}).status, 0);
  EXPECT_TRUE(holds(run({"--version"}).out, "ranklog "));
}

TEST_F(RanklogProgram, MistypedCommandsAndFlagsSuggestTheNearest) {
  const Ran command = run({"qurey", "SELECT 1"});
  EXPECT_EQ(command.status, 2);
  EXPECT_TRUE(holds(command.err, "did you mean query?")) << command.err;
  EXPECT_EQ(lines_in(command.err), 1);
  const Ran flag = run({"ls", "--jsn"});
  EXPECT_EQ(flag.status, 2);
  EXPECT_TRUE(holds(flag.err, "--json")) << flag.err;
  EXPECT_EQ(lines_in(flag.err), 1);
  EXPECT_EQ(run({}).status, 2);
  EXPECT_EQ(run({"plot"}).status, 2);
}

TEST_F(RanklogProgram, AFolderWithoutLogsSaysWhatToDoNext) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"ls"}, {"ls", "."}, {"query", "SELECT 1"}, {"plot", "loss", "."}}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, 1) << arguments[0];
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(holds(ran.err, "no logs in")) << ran.err;
    EXPECT_TRUE(holds(ran.err, "RANKLOG_DIR")) << ran.err;
    EXPECT_EQ(lines_in(ran.err), 1) << ran.err;
  }
  const Ran missing = run({"ls", "nowhere"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_TRUE(holds(missing.err, "nowhere")) << missing.err;
}

TEST_F(RanklogProgram, LsTellsFinishedFromRunningFromCrashed) {
  write("done", {0, 1}, 2);
  write("failed", {0}, 1, EndState::kFailed);
  {
    Identity who = identity("running", 0, 4);
    who.pid = getpid();
    who.pid_start_ticks = 0;  // filled below
    std::ifstream stat("/proc/self/stat");
    std::string word;
    for (int field = 1; field <= 22; ++field) stat >> word;
    who.pid_start_ticks = std::stoull(word);
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    who.host = host.data();
    RankFileBuilder(path_of(who), who, now_ns()).row(0, {{"loss", 1.0}});
    who.experiment = "crashed";
    who.pid_start_ticks += 1;  // somebody else's pid
    RankFileBuilder(path_of(who), who, now_ns()).row(0, {{"loss", 1.0}});
  }
  const Ran ran = run({"ls", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  std::map<std::string, json> found;
  const json listed = json::parse(ran.out);
  for (const json& experiment : listed["experiments"]) found[experiment["experiment"]] = experiment;
  ASSERT_EQ(found.size(), 4u) << ran.out;
  EXPECT_EQ(found["done"]["state"], "finished");
  EXPECT_EQ(found["failed"]["state"], "failed");
  EXPECT_EQ(found["running"]["state"], "running");
  EXPECT_EQ(found["crashed"]["state"], "crashed");
  EXPECT_EQ(found["done"]["rows"], 40);
  EXPECT_EQ(found["done"]["last_step"], 19);
  EXPECT_EQ(found["done"]["group"], "demo");
  EXPECT_EQ(found["running"]["ranks"], json({0}));
  EXPECT_EQ(found["running"]["missing_ranks"], json({1, 2, 3}));
  EXPECT_GT(found["done"]["size"].get<std::int64_t>(), 1000);
  EXPECT_EQ(found["done"]["started"].get<std::string>().size(), 24u);
}

TEST_F(RanklogProgram, LsShowsRanksFoundOfExpected) {
  write("partial", {0, 2}, 4);
  const Ran table = run({"ls"});
  EXPECT_EQ(table.status, 0);
  EXPECT_TRUE(holds(table.out, "2/4")) << table.out;
  EXPECT_TRUE(holds(table.out, "partial")) << table.out;
  EXPECT_EQ(lines_in(table.out), 2);
  const Ran longer = run({"ls", "-l"});
  EXPECT_TRUE(holds(longer.out, "rank-00002.db")) << longer.out;
  EXPECT_TRUE(holds(longer.out, "no file of ranks 1 3")) << longer.out;
}

TEST_F(RanklogProgram, LsFindsTheFolderByVariableAndByArgument) {
  write("there", {0}, 1);
  fs::rename(dir_ / "ranklog", dir_ / "elsewhere");
  EXPECT_EQ(run({"ls"}).status, 1);
  EXPECT_TRUE(holds(run({"ls"}, {{"RANKLOG_DIR", (dir_ / "elsewhere").string()}}).out, "there"));
  EXPECT_TRUE(holds(run({"ls", "elsewhere"}).out, "there"));
  EXPECT_TRUE(holds(run({"ls", "elsewhere/digits/there/rank-00000.db"}).out, "there"));
}

TEST_F(RanklogProgram, TheFolderThatAWriterChoosesIsTheOneThatIsRead) {
  write("there", {0}, 1);
  fs::create_directory(dir_ / "results");
  fs::rename(dir_ / "ranklog", dir_ / "results/ranklog");
  const test::Variables variables{{"WANDB_DIR", (dir_ / "results").string()}};
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"ls"}, {"query", "SELECT count(*) FROM points"}, {"plot", "loss"}}) {
    EXPECT_EQ(run(arguments, variables).status, 0) << run(arguments, variables).err;
  }
}

TEST_F(RanklogProgram, UnreadableFilesAreNamedAndTheRestIsShown) {
  write("good", {0}, 2);
  test::write_file(dir_ / "ranklog/digits/good/rank-00001.db",
                   "this is no database at all, but long enough to be one");
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"ls"}, {"query", "SELECT count(*) FROM points"}, {"plot", "loss"}}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, 5) << arguments[0] << ran.err;
    EXPECT_TRUE(holds(ran.err, "rank-00001.db")) << ran.err;
    EXPECT_EQ(lines_in(ran.err), 1) << ran.err;
    EXPECT_FALSE(ran.out.empty());
  }
  const json listed = json::parse(run({"ls", "--json"}).out);
  EXPECT_EQ(listed["experiments"].size(), 1u);
  EXPECT_EQ(listed["problems"].size(), 1u);
}

TEST_F(RanklogProgram, WhereNothingCanBeReadThatIsAllThatIsSaid) {
  fs::create_directories(path_of(identity("e", 0, 1)).parent_path());
  test::write_file(path_of(identity("e", 0, 1)), "this is no database at all, but long enough to be one");
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"ls"}, {"query", "SELECT count(*) FROM points"}, {"plot", "loss"}}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, 5) << arguments[0];
    EXPECT_TRUE(holds(ran.err, "rank-00000.db")) << ran.err;
    EXPECT_TRUE(holds(ran.err, "is no rank file")) << ran.err;
    EXPECT_EQ(lines_in(ran.err), 1) << ran.err;
  }
}

TEST_F(RanklogProgram, AMistakeHidesNoUnreadableFile) {
  write("e", {0}, 3);
  test::write_file(path_of(identity("e", 1, 3)), "this is no database at all, but long enough to be one");
  {
    const Identity who = identity("e", 2, 3);
    RankFileBuilder(path_of(who), who, now_ns()).row(0, {{"acc", 1.0}}).finish();
    test::PlainDatabase(path_of(who).string()).execute("UPDATE chunk SET data = x'00'");
  }
  struct Case {
    std::vector<std::string> arguments;
    int status;
    std::string mistake;
    bool reads_rank_2;
  };
  for (const Case& one : std::vector<Case>{
           {{"ls", "-e", "x"}, 1, "no experiment here is called", false},
           {{"query", "SELECT count(*) FROM points", "-e", "x"}, 1, "no experiment here is called", false},
           {{"query", "SELECT rnk FROM points"}, 2, "did you mean rank?", false},
           {{"query",
             "SELECT abs(-9223372036854775807 - count(*)) FROM points WHERE rank = 2 OR (step = 0 AND key = "
             "'loss')"},
            2,
            "integer overflow",
            true},
           {{"plot", "los"}, 1, "did you mean loss?", false},
           {{"plot", "loss", "--ranks", "7"}, 1, "no value of 'loss'", false},
           {{"plot", "acc"}, 1, "no value of 'acc'", true}}) {
    const Ran ran = run(one.arguments);
    EXPECT_EQ(ran.status, one.status) << ran.err;
    EXPECT_TRUE(holds(ran.err, "rank-00001.db")) << ran.err;
    EXPECT_TRUE(holds(ran.err, one.mistake)) << ran.err;
    EXPECT_EQ(holds(ran.err, "rank-00002.db"), one.reads_rank_2) << ran.err;
    EXPECT_EQ(lines_in(ran.err), one.reads_rank_2 ? 3 : 2) << ran.err;
  }
}

TEST_F(RanklogProgram, ATruncatedFileIsNamedInOneLineAndTheRestIsRead) {
  write("e", {0, 1, 2}, 3);
  fs::resize_file(path_of(identity("e", 1, 3)), 6000);
  const Ran ran = run({"query", "--csv", "SELECT DISTINCT rank FROM points"});
  EXPECT_EQ(ran.status, 5);
  EXPECT_EQ(ran.out, "rank\n0\n2\n");
  EXPECT_TRUE(holds(ran.err, "rank-00001.db")) << ran.err;
  EXPECT_EQ(lines_in(ran.err), 1) << ran.err;
}

TEST_F(RanklogProgram, LsReadsNoPoints) {
  write("big", {0}, 1);
  const fs::path path = path_of(identity("big", 0, 1));
  test::PlainDatabase raw(path.string());
  raw.execute("UPDATE chunk SET data = x'00'");  // decoding any chunk would now fail
  const Ran ran = run({"ls", "-l"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(holds(ran.out, "finished"));
  // series and runs need none either; points does, and says so.
  EXPECT_EQ(run({"query", "SELECT count FROM series"}).status, 0);
  const Ran points = run({"query", "SELECT count(*) FROM points"});
  EXPECT_EQ(points.status, 5);
  EXPECT_TRUE(holds(points.err, "rank-00000.db")) << points.err;
}

TEST_F(RanklogProgram, CheckReadsEverythingAndNamesWhatIsDamaged) {
  write("whole", {0, 1}, 2);
  write("hurt", {0}, 1);
  const Ran whole = run({"check", "-e", "whole"});
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(whole.out, "2 files checked, 0 damaged\n");
  test::PlainDatabase raw(path_of(identity("hurt", 0, 1)).string());
  raw.execute("UPDATE chunk SET data = x'00'");
  const Ran all = run({"check"});
  EXPECT_EQ(all.status, 5);
  EXPECT_TRUE(holds(all.out, "rank-00000.db: 0 of 20 rows can be read")) << all.out;
  EXPECT_TRUE(holds(all.out, "chunk 1: ")) << all.out;
  EXPECT_TRUE(holds(all.out, "3 files checked, 1 damaged")) << all.out;
  const json document = json::parse(run({"check", "--json", "-e", "hurt"}).out);
  EXPECT_EQ(document["files"][0]["rows"], 20);
  EXPECT_EQ(document["files"][0]["readable_rows"], 0);
  EXPECT_EQ(document["files"][0]["damage"].size(), 1u);
}

// The number of unused bytes in a page: nothing that is read depends on it.
TEST_F(RanklogProgram, CheckNamesDamageThatOnlySqliteSees) {
  write("hurt", {0}, 1);
  const fs::path path = path_of(identity("hurt", 0, 1));
  std::string bytes = test::read_file(path);
  constexpr std::size_t kPage = 512;
  constexpr std::size_t kFragmentedBytes = 7;
  bytes[kPage + kFragmentedBytes] = static_cast<char>(bytes[kPage + kFragmentedBytes] ^ 1);
  test::write_file(path, bytes);
  const Ran ran = run({"check"});
  EXPECT_EQ(ran.status, 5) << ran.out;
  EXPECT_TRUE(holds(ran.out, "20 of 20 rows can be read")) << ran.out;
  EXPECT_TRUE(holds(ran.out, "database: ")) << ran.out;
}

TEST_F(RanklogProgram, CheckReadsLiveFilesToo) {
  write("live", {0}, 1, std::nullopt);
  const Ran ran = run({"check"});
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_EQ(ran.out, "1 file checked, 0 damaged\n");
}

TEST_F(RanklogProgram, RepairSalvagesTheDamagedExperimentElsewhere) {
  write("whole", {0}, 1);
  const Identity who = identity("hurt", 0, 1);
  {
    RankFileBuilder file(path_of(who), who, now_ns());
    for (int step = 0; step < 10; ++step) file.row(step, {{"loss", 1.0 / (1 + step)}}).seal();
    file.finish();
  }
  test::PlainDatabase(path_of(who).string()).execute("UPDATE chunk SET data = x'00' WHERE id = 3");
  const std::string before = test::read_file(path_of(who));
  const auto salvaged = (dir_ / "salvaged").string();
  const Ran ran = run({"check", "--repair", salvaged});
  EXPECT_EQ(ran.status, 5);
  EXPECT_TRUE(holds(ran.out, "1 rank file, 9 rows; 1 row lost")) << ran.out;
  EXPECT_EQ(test::read_file(path_of(who)), before);
  EXPECT_EQ(run({"check", salvaged}).out, "1 file checked, 0 damaged\n");
  const Ran points = run({"query", "--csv", "SELECT count(*) FROM points", salvaged});
  EXPECT_EQ(points.status, 0) << points.err;
  EXPECT_TRUE(holds(points.out, "9")) << points.out;
  const Ran again = run({"check", "--repair", salvaged});
  EXPECT_EQ(again.status, 1) << "what is there already stays";
  EXPECT_TRUE(holds(again.err, "is not empty")) << again.err;
}

TEST_F(RanklogProgram, SnapshotOfALiveExperimentIsWholeByItself) {
  const Identity who = identity("live", 0, 1);
  RankFileBuilder file(path_of(who), who, now_ns());
  file.row(0, {{"loss", 1.0}}).seal().row(1, {{"loss", 0.5}});
  const auto folder = path_of(who).parent_path();
  std::filesystem::create_directory(folder / "files");
  test::write_file(folder / "files" / "abc", "picture");
  file.operation(RunFile{0, 0, "media/images/x.png", "files/abc", 7, "m", "s", "media"});
  file.operation(RunFile{0, 0, "media/images/gone.png", "files/gone", 7, "m", "s", "media"});
  const auto output = dir_ / "snapshot";
  const Ran ran = run({"snapshot", "-o", output.string()});
  EXPECT_EQ(ran.status, 5) << "one file is missing";
  EXPECT_TRUE(holds(ran.err, "files/gone")) << ran.err;
  EXPECT_TRUE(holds(ran.out, "1 rank file, 2 rows, 1 captured file")) << ran.out;
  const auto copy = output / folder.lexically_relative(dir_ / "ranklog");
  EXPECT_EQ(test::read_file(copy / "files" / "abc"), "picture");
  EXPECT_FALSE(std::filesystem::exists(copy / "rank-00000.tail.0"));
  EXPECT_EQ(RankFile::open(copy / "rank-00000.db").info().rows, 2u);
  EXPECT_EQ(run({"check", output.string()}).status, 0);
}

TEST_F(RanklogProgram, OneBadCapturedFileStopsNoSnapshotAndEveryNodesFolderIsTried) {
  for (const int rank : {0, 1}) {
    const Identity who = identity("nodes", rank, 2);
    const fs::path path = dir_ / ("node" + std::to_string(rank)) / "digits/nodes" / "rank-00000.db";
    RankFileBuilder file(path.parent_path() / ("rank-0000" + std::to_string(rank) + ".db"), who, now_ns());
    file.row(0, {{"loss", 1.0}});
    file.operation(RunFile{0, 0, "a", "files/folder", 1, "m", "s", "file"});
    file.operation(RunFile{0, 0, "b", "files/of-node-1", 1, "m", "s", "file"});
    file.finish();
  }
  fs::create_directories(dir_ / "node0/digits/nodes/files/folder");
  fs::create_directories(dir_ / "node1/digits/nodes/files");
  test::write_file(dir_ / "node1/digits/nodes/files/of-node-1", "b");
  const Ran ran = run({"snapshot", "-o", "out", "node0", "node1"});
  EXPECT_EQ(ran.status, 5) << ran.err;
  EXPECT_TRUE(holds(ran.out, "2 rank files, 2 rows, 1 captured file")) << ran.out;
  EXPECT_TRUE(holds(ran.err, "files/folder' is no regular file")) << ran.err;
  EXPECT_EQ(lines_in(ran.err), 1) << ran.err;
  EXPECT_EQ(test::read_file(dir_ / "out/digits/nodes/files/of-node-1"), "b");
}

TEST_F(RanklogProgram, CopyThatWasKilledIsPassedOver) {
  write("e", {0, 1}, 2);
  fs::create_directories(dir_ / "out/digits");
  fs::create_directories(dir_ / "out/digits/.e.partial-1");  // of a copy that was killed
  fs::copy(path_of(identity("e", 0, 2)), dir_ / "out/digits/.e.partial-1/rank-00000.db");
  EXPECT_EQ(run({"ls", "out"}).status, 1) << "it is passed over";
  EXPECT_EQ(run({"snapshot", "-o", "out"}).status, 0);
  EXPECT_TRUE(fs::exists(dir_ / "out/digits/e/rank-00001.db"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "out/digits"), {}), 2);
}

TEST_F(RanklogProgram, CopyOfAFileWithAnyNameIsFoundAgain) {
  write("e", {0}, 1);
  fs::copy(path_of(identity("e", 0, 1)), dir_ / "renamed.db");
  EXPECT_EQ(run({"snapshot", "-o", "out", "renamed.db"}).status, 0);
  EXPECT_TRUE(fs::exists(dir_ / "out/digits/e/rank-00000.db"));
}

TEST_F(RanklogProgram, RepairSaysWhatItLeavesOut) {
  const Identity who = identity("hurt", 0, 1);
  {
    RankFileBuilder file(path_of(who), who, now_ns());
    file.row(0, {{"loss", 1.0}}).seal().row(1, {{"loss", 1.0}});
    file.operation(RunFile{0, 0, "media/images/gone.png", "files/gone", 7, "m", "s", "media"});
    file.finish();
  }
  test::PlainDatabase(path_of(who).string()).execute("UPDATE chunk SET data = x'00' WHERE id = 1");
  const Ran ran = run({"check", "--repair", "salvaged"});
  EXPECT_EQ(ran.status, 5) << ran.err;
  EXPECT_TRUE(holds(ran.err, "files/gone")) << ran.err;
  EXPECT_TRUE(holds(ran.err, "chunk 1")) << ran.err;
}

TEST_F(RanklogProgram, CompactMergesTheChunksOfFinishedFilesAndLeavesLiveOnesAlone) {
  const Identity who = identity("scattered", 0, 1);
  RankFileBuilder file(path_of(who), who, now_ns());
  for (int step = 0; step < 100; ++step) file.row(step, {{"loss", 1.0 / (1 + step)}}).seal();
  file.finish();
  write("live", {0}, 1, std::nullopt);
  const std::string rows = "SELECT count(*), sum(value) FROM points WHERE experiment = 'scattered'";
  const Ran before = run({"query", "--csv", rows});
  const Ran ran = run({"compact"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(holds(ran.out, "1 file: 100 chunks are now 1,")) << ran.out;
  EXPECT_TRUE(holds(ran.out, "1 left alone")) << ran.out;
  EXPECT_EQ(run({"query", "--csv", rows}).out, before.out);
  EXPECT_EQ(run({"check"}).status, 0);
}

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

TEST_F(RanklogProgram, ReadingChangesNoLog) {
  write("e", {0}, 1);
  write("live", {0}, 1, std::nullopt);
  const auto snapshot = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(dir_ / "ranklog")) {
      if (entry.is_regular_file()) files[entry.path().string()] = test::read_file(entry.path());
    }
    return files;
  };
  const auto before = snapshot();
  (void)run({"ls", "-l"});
  (void)run({"query", "SELECT * FROM points"});
  (void)run({"plot", "loss"});
  const auto after = snapshot();
  for (const auto& [path, bytes] : before) {
    ASSERT_EQ(after.count(path), 1u) << path << " is gone";
    EXPECT_TRUE(after.at(path) == bytes) << path << " has changed";
  }
  for (const auto& [path, bytes] : after) {
    // SQLite readers of a WAL database meet in its -shm; an empty -wal comes with it.
    const bool side_file = path.ends_with("-shm") || (path.ends_with("-wal") && bytes.empty());
    EXPECT_TRUE(side_file || before.count(path) == 1) << path << " is new";
  }
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
  EXPECT_TRUE(holds(ran.err, "rank-00000.db: database: it is shorter than its header says")) << ran.err;
  const json document = json::parse(run({"ls", "-l", "--json"}).out);
  EXPECT_EQ(document["experiments"][0]["damaged_files"], 1);
  EXPECT_EQ(document["experiments"][0]["files"][0]["damage"].size(), 1U);
  EXPECT_EQ(document["experiments"][0]["files"][1]["damage"].size(), 0U);
}

TEST_F(RanklogProgram, JsonIsPrintedOnErrorsToo) {
  const Ran none = run({"ls", "--json"});
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(json::parse(none.out)["exit_status"], 1);
  EXPECT_TRUE(holds(json::parse(none.out)["error"].get<std::string>(), "there are no logs"));
  EXPECT_EQ(json::parse(run({"ls", "--json", "--nonsense"}).out)["exit_status"], 2);
  EXPECT_EQ(run({"ls"}).out, "");
  EXPECT_TRUE(json::parse(run({"query", "--schema", "--json"}).out).is_array());
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

TEST_F(RanklogProgram, ValuesOutOfRangeAreExplainedAndOnlyUnknownFlagsAreGuessed) {
  const Ran color = run({"ls", "--color", "sometimes"});
  EXPECT_EQ(color.status, 2);
  EXPECT_TRUE(holds(color.err, "use auto, always or never")) << color.err;
  EXPECT_EQ(color.err.find('\x01'), std::string::npos);
  EXPECT_FALSE(holds(run({"plot", "loss", "--width", "5"}).err, "did you mean"));
  EXPECT_TRUE(holds(run({"plot", "loss", "--smooth", "1.5"}).err, "is not a number from 0 to below 1"));
  EXPECT_TRUE(holds(run({"ls", "--jsn"}).err, "did you mean --json?"));
}

TEST_F(RanklogProgram, ShowTellsIdentityConfigStateModeAndDrops) {
  Identity who = identity("e", 0, 1);
  who.tags = {"big", "blue"};
  Durability mode;
  mode.journal = JournalMode::kPersist;
  mode.tail = "append";
  mode.file_system = "nfs4";
  mode.reason = "its files may be shared";
  RankFileBuilder file(path_of(who), who, now_ns(), mode);
  file.row(0, {{"loss", 1.0}}).operation(ConfigEntry{"lr", "0.5"});
  file.finish(EndState::kPreempted, 75);
  for (const std::string& what : {std::string("e"), path_of(who).string()}) {
    const Ran ran = run({"show", what});
    EXPECT_EQ(ran.status, 0) << ran.err;
    for (const char* part :
         {"digits/e", "preempted", "big, blue", "lr = 0.5", "journal_mode=persist", "tail=append",
          "on nfs4: its files may be shared", "0 rows", "1 of 1 in 1 file"}) {
      EXPECT_TRUE(holds(ran.out, part)) << part << '\n' << ran.out;
    }
  }
  const Ran ran = run({"show", "--json", "e"});
  const json experiment = json::parse(ran.out)["experiments"][0];
  EXPECT_EQ(experiment["config"], json({{"lr", 0.5}}));
  EXPECT_EQ(experiment["files"][0]["state"], "preempted");
  EXPECT_EQ(experiment["files"][0]["durability"]["journal_mode"], "persist");
  EXPECT_EQ(experiment["files"][0]["durability"]["file_system"], "nfs4");
}

TEST_F(RanklogProgram, ShowOfAnUnknownExperimentNamesTheNearest) {
  write("digits-run", {0}, 1);
  const Ran ran = run({"show", "digits-rn"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(holds(ran.err, "did you mean digits-run?")) << ran.err;
  EXPECT_EQ(run({"show"}).status, 2);
}

}  // namespace
}  // namespace ranklog
