#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/identity.hpp"
#include "ranklog/schema/key_path.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/records.hpp"

namespace ranklog {
namespace {

TEST(KeyPath, NestedAndFlatKeysAreToldApart) {
  EXPECT_EQ((KeyPath{{"a", "b"}}).display(), "a.b");
  EXPECT_EQ(KeyPath::flat("a.b").display(), "a\\.b");
  EXPECT_EQ(KeyPath::parse("a.b"), (KeyPath{{"a", "b"}}));
  EXPECT_EQ(KeyPath::parse("a\\.b"), KeyPath::flat("a.b"));
}

TEST(KeyPath, DisplayIsReversibleForAnyNames) {
  const KeyPath paths[] = {{{""}},
                           {{"", ""}},
                           {{".", "\\", "\\."}},
                           {{"train/loss", "rank-0"}},
                           {{"new\nline", "\xF0\x9F\x9A\x80", "quote'\""}},
                           {{std::string(300, 'x'), std::string("nul\0in", 6)}},
                           {{"trailing\\"}}};
  for (const KeyPath& path : paths) EXPECT_EQ(KeyPath::parse(path.display()), path) << path.display();
}

TEST(KeyPath, BackslashThatEscapesNothingIsRefused) {
  for (const char* text : {"a\\b", "a\\", "\\n"}) {
    try {
      (void)KeyPath::parse(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos);
    }
  }
}

TEST(KeyPath, OnlyWandbsOwnNamesAreReserved) {
  for (const char* name : {"_step", "_runtime", "_timestamp", "_wandb"}) EXPECT_TRUE(is_reserved_name(name));
  for (const char* name : {"", "step", "_steps", "_STEP"}) EXPECT_FALSE(is_reserved_name(name));
}

TEST(Naming, FileNamesAreReversibleAndSafe) {
  const std::string names[] = {"plain",    "",     ".",    "..",        ".hidden",        "a/b",
                               "%",        "%2F",  "50%",  "100%41",    "new\nline",      "a\\b c~2",
                               "\xC3\xA9", "\x7f", "a..b", "x.tail.db", std::string(1, 0)};
  for (const std::string& name : names) {
    const std::string encoded = encode_file_name(name);
    EXPECT_EQ(decode_file_name(encoded), name);
    EXPECT_FALSE(encoded.empty());
    EXPECT_NE(encoded.front(), '.');
    EXPECT_EQ(encoded.find('/'), std::string::npos);
    EXPECT_EQ(encoded.find('\0'), std::string::npos);
  }
  EXPECT_EQ(experiment_folder("logs", "my/project", "job.1"), "logs/my%2Fproject/job.1");
}

TEST(Naming, RankFileNamesParseBack) {
  EXPECT_EQ(rank_file_name(3, 0), "rank-00003.db");
  EXPECT_EQ(rank_file_name(16383, 2), "rank-16383.2.db");
  EXPECT_EQ(rank_file_name(123456, 0), "rank-123456.db");
  for (const int rank : {0, 7, 99999, 100000}) {
    for (const int number : {0, 1, 12}) {
      const auto parsed = parse_rank_file_name(rank_file_name(rank, number));
      ASSERT_TRUE(parsed);
      EXPECT_EQ(parsed->rank, rank);
      EXPECT_EQ(parsed->number, number);
    }
  }
}

TEST(Naming, OtherNamesAreNotRankFiles) {
  for (const char* name :
       {"", "rank-.db", "rank-0.db", "rank-00000.db-wal", "rank-00000.tail.1", "rank-00000",
        "rank-00000.0.db", "rank-00000.01.db", "rank-00000..db", "rank--0001.db", "rank-99999999999999.db",
        "rank-00000.1.2.db", "xrank-00000.db", "rank-.d", "rank-db"}) {
    EXPECT_FALSE(parse_rank_file_name(name)) << name;
  }
}

TEST(Naming, TailSegmentsStandBesideTheirFile) {
  EXPECT_EQ(tail_segment_path("x/rank-00000.db", 7), "x/rank-00000.tail.7");
  EXPECT_EQ(tail_segment_path("x/rank-00000.2.db", 0), "x/rank-00000.2.tail.0");
}

TEST(Naming, ArtifactNamesThatAreFineStayAsTheyAre) {
  for (const std::string& name :
       {std::string("exp-7-model"), std::string("A_b.c-1"), std::string(128, 'x')}) {
    EXPECT_EQ(artifact_name(name), name);
  }
}

TEST(Naming, DifferentArtifactNamesStayDifferent) {
  // The first 8 digits of what sha256sum prints for these names.
  EXPECT_EQ(artifact_name("a/b-model"), "a-b-model-3bb88c16");
  EXPECT_EQ(artifact_name("a b-model"), "a-b-model-e21af69b");
  const std::string long_name(200, 'x');
  EXPECT_EQ(artifact_name(long_name), std::string(119, 'x') + "-aa20c23e");
  EXPECT_NE(artifact_name(long_name), artifact_name(long_name + "y"));
  EXPECT_EQ(artifact_name(std::string(127, '/') + "-model").size(), 128U);
}

TEST(Identity, StrategyWordsAreThoseOfTheGuide) {
  for (const Strategy strategy : {Strategy::kMain, Strategy::kNode, Strategy::kAll}) {
    EXPECT_EQ(parse_strategy(to_string(strategy)), strategy);
  }
  try {
    (void)parse_strategy("single");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_STREQ(error.what(), "unknown strategy 'single'; use main, node or all");
  }
}

TEST(Records, EndStatesParseBack) {
  for (const EndState state : {EndState::kFinished, EndState::kFailed, EndState::kPreempted}) {
    EXPECT_EQ(parse_end_state(to_string(state)), state);
  }
  EXPECT_FALSE(parse_end_state("crashed"));
}

TEST(Names, LogsAreLookedForWhereTheyGo) {
  std::map<std::string, std::string, std::less<>> variables;
  const auto lookup = [&](std::string_view name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_EQ(default_log_folder(lookup), "ranklog");
  variables["WANDB_DIR"] = "/results";
  EXPECT_EQ(default_log_folder(lookup), "/results/ranklog");
  variables["RANKLOG_DIR"] = "/logs";
  EXPECT_EQ(default_log_folder(lookup), "/logs");
  variables = {{"RANKLOG_DIR", ""}, {"WANDB_DIR", ""}};
  EXPECT_EQ(default_log_folder(lookup), "ranklog");
}

}  // namespace
}  // namespace ranklog
