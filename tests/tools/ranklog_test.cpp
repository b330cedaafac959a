// The program as its user meets it: what it prints and how it ends.

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plain_table.hpp"
#include "ranklog_program.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::holds;
using test::lines_in;
using test::now_ns;
using test::Ran;
using test::RankFileBuilder;
using test::RanklogProgram;

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

TEST_F(RanklogProgram, JsonIsPrintedOnErrorsToo) {
  const Ran none = run({"ls", "--json"});
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(json::parse(none.out)["exit_status"], 1);
  EXPECT_TRUE(holds(json::parse(none.out)["error"].get<std::string>(), "there are no logs"));
  EXPECT_EQ(json::parse(run({"ls", "--json", "--nonsense"}).out)["exit_status"], 2);
  EXPECT_EQ(run({"ls"}).out, "");
  EXPECT_TRUE(json::parse(run({"query", "--schema", "--json"}).out).is_array());
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
