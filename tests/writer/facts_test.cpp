// What the writer finds out by itself, and what it keeps to itself.

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "helpers.hpp"
#include "process_facts.hpp"
#include "ranklog/schema/libraries.hpp"
#include "secrets.hpp"

namespace ranklog {
namespace {

using test::write_file;

TEST(Secrets, AreToldByNameOrByNameAndLook) {
  struct Case {
    const char* name;
    const char* text;
    bool secret;
  };
  const std::vector<Case> cases{
      {"api_key", "abc", true},
      {"apiKey", "abc", true},
      {"WANDB_API_KEY", "abc", true},
      {"--api-key", "abc", true},
      {"password", "x", true},
      {"db_password", "hunter2", true},
      {"token", "x", true},
      {"secret", "x", true},
      {"Authorization", "Bearer x", true},
      {"optimizer.client_secret", "x", true},
      {"hf_token", "hf_AbCdEf0123456789xyz", true},
      {"signing_key", "9f86d081884c7d659a2feaa0c55ad015", true},
      {"max_tokens", "512", false},
      {"pad_token", "<pad>", false},
      {"eos_token", "<|endoftext|>", false},
      {"unk_token", "reserved_special_token_0001", false},
      {"sort_key", "epoch", false},
      {"tokenizer", "gpt2", false},
      {"password", "", false},
      {"monkey", "bananas", false},
      {"sha256", "9f86d081884c7d659a2feaa0c55ad015", false},
  };
  for (const auto& one : cases)
    EXPECT_EQ(writer::is_secret(one.name, one.text), one.secret) << one.name << " " << one.text;
}

TEST(Secrets, AreMaskedInArguments) {
  EXPECT_EQ(writer::mask_arguments({"--lr", "0.1", "--password", "x", "--api-key=y", "login.token=z", "train",
                                    "--verbose", "--secret", "-H", "Authorization: Bearer q"}),
            (std::vector<std::string>{"--lr", "0.1", "--password", "***", "--api-key=***", "login.token=***",
                                      "train", "--verbose", "--secret", "-H", "Authorization:***"}));
}

TEST(Secrets, AreMaskedWholeAfterTheirFlagThoughTheyHoldSeparators) {
  EXPECT_EQ(writer::mask_arguments({"--token", "eyJhbGciOi.eyJzdWIi.abc==", "--password", "a:b", "--secret",
                                    "--api-key=a=b", "--pad-token", "a:b", "--lr", "a=b"}),
            (std::vector<std::string>{"--token", "***", "--password", "***", "--secret", "--api-key=***",
                                      "--pad-token", "a:b", "--lr", "a=b"}));
}

TEST(Secrets, AreStrippedFromAddressesInArguments) {
  EXPECT_EQ(writer::mask_arguments({"https://user:pw@host/x", "--url=https://user:pw@host", "--proxy",
                                    "http://u:p@one,http://u:p@two", "ssh://git@host/x@y"}),
            (std::vector<std::string>{"https://host/x", "--url=https://host", "--proxy",
                                      "http://one,http://two", "ssh://host/x@y"}));
}

TEST(Secrets, AreMaskedInConfigWhateverTheirType) {
  nlohmann::ordered_json config{
      {"password", 1234},  {"token", {1, "x", nullptr}}, {"secret", true},          {"db_password", 1.5},
      {"passwd", nullptr}, {"max_tokens", 512},          {"hf_token", 12345678901}, {"key", 7}};
  writer::mask_secrets("", config);
  EXPECT_EQ(config.dump(),
            R"({"password":"***","token":["***","***",null],"secret":"***","db_password":"***",)"
            R"("passwd":null,"max_tokens":512,"hf_token":12345678901,"key":7})");
}

TEST(Secrets, AreMaskedInsideConfigAndNeverReachTheFile) {
  const test::ScopedEnvironment environment(
      std::map<std::string, std::string>{{"WANDB_API_KEY", "5ecret5ecret5ecret5ecret"}});
  const test::TempDir dir;
  auto log = Writer::open(test::options_in(dir.path()));
  log.config({{"api_key", "5ecret5ecret5ecret5ecret"}, {"lr", 0.1}, {"max_tokens", 512}, {"password", 1234}});
  log.config_json(R"({"login":{"password":"5ecret5ecret5ecret5ecret","user":"u"},
                      "endpoints":[{"token":"5ecret5ecret5ecret5ecret"}],"pad_token":"<pad>"})");
  std::map<std::string, std::string> config;
  for (const auto& entry : RankFile::open(log.path()).config()) config[entry.key] = entry.json;
  EXPECT_EQ(config["api_key"], "\"***\"");
  EXPECT_EQ(config["login"], R"({"password":"***","user":"u"})");
  EXPECT_EQ(config["endpoints"], R"([{"token":"***"}])");
  EXPECT_EQ(config["pad_token"], "\"<pad>\"");
  EXPECT_EQ(config["max_tokens"], "512");
  EXPECT_EQ(config["password"], "\"***\"");
  for (const auto& name : test::list_folder(log.folder())) {
    EXPECT_EQ(test::read_file(log.folder() / name).find("5ecret"), std::string::npos) << name;
  }
}

TEST(Secrets, AreStrippedFromAddresses) {
  EXPECT_EQ(writer::strip_credentials("https://user:token@host/path@x"), "https://host/path@x");
  EXPECT_EQ(writer::strip_credentials("https://host/path"), "https://host/path");
  EXPECT_EQ(writer::strip_credentials("git@host:path"), "git@host:path");
}

class GitFactsTest : public ::testing::Test {
 protected:
  GitFactsTest() {
    std::filesystem::create_directories(git_ / "refs" / "heads");
    std::filesystem::create_directories(dir_ / "deep" / "down");
    write_file(git_ / "HEAD", "ref: refs/heads/main\n");
    write_file(git_ / "config",
               "[core]\n\turl = wrong\n[remote \"fork\"]\n\turl = wrong\n[remote \"origin\"]\n\turl = "
               "https://me:pass@host/repo.git\n");
  }

  const test::TempDir dir_;
  const std::filesystem::path git_ = dir_ / ".git";
  const std::string commit_ = std::string(20, 'a') + std::string(20, '1');
};

TEST_F(GitFactsTest, AreReadFromLooseAndPackedBranchesAndDetachedHeads) {
  write_file(git_ / "packed-refs", "# pack-refs with: peeled\n" + std::string(40, 'b') +
                                       " refs/heads/other\n" + commit_ + " refs/heads/main\n");
  auto facts = writer::read_git_facts(dir_ / "deep" / "down");
  EXPECT_EQ(facts.commit, commit_);
  EXPECT_EQ(facts.remote, "https://host/repo.git");

  write_file(git_ / "refs" / "heads" / "main", std::string(40, 'c') + "\n");
  EXPECT_EQ(writer::read_git_facts(dir_.path()).commit, std::string(40, 'c'));

  write_file(git_ / "HEAD", commit_ + "\n");
  EXPECT_EQ(writer::read_git_facts(dir_.path()).commit, commit_);
}

TEST_F(GitFactsTest, AreReadFromALinkedWorkTree) {
  const auto linked = git_ / "worktrees" / "tree";
  std::filesystem::create_directories(linked);
  write_file(linked / "HEAD", "ref: refs/heads/topic\n");
  write_file(linked / "commondir", "../..\n");
  write_file(git_ / "refs" / "heads" / "topic", commit_ + "\n");
  std::filesystem::create_directories(dir_ / "deep" / "tree");
  write_file(dir_ / "deep" / "tree" / ".git", "gitdir: " + linked.string() + "\n");
  const auto facts = writer::read_git_facts(dir_ / "deep" / "tree");
  EXPECT_EQ(facts.commit, commit_);
  EXPECT_EQ(facts.remote, "https://host/repo.git");
}

TEST(HostFacts, SayWhatThisMachineIs) {
  const auto facts = nlohmann::json::parse(writer::host_facts_json());
  EXPECT_EQ(facts.at("cpu_count"), sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_GT(facts.at("memory_bytes"), 1 << 20);
  EXPECT_TRUE(facts.at("kernel").get<std::string>().starts_with("Linux "));
  for (const auto& [name, value] : facts.items()) EXPECT_NE(value, "") << name;
}

TEST(HostFacts, LibrariesAreThoseThatAreLoaded) {
  const auto libraries = nlohmann::json::parse(library_versions_json());
  EXPECT_EQ(libraries.at("sqlite"), sqlite3_libversion());
  EXPECT_TRUE(libraries.contains("ranklog"));
  EXPECT_TRUE(libraries.contains("zstd"));
}

TEST_F(GitFactsTest, AreEmptyWhereNothingCanBeRead) {
  EXPECT_EQ(writer::read_git_facts(dir_.path()).commit, "");
  write_file(git_ / "HEAD", "nonsense");
  EXPECT_EQ(writer::read_git_facts(dir_.path()).commit, "");
}

}  // namespace
}  // namespace ranklog
