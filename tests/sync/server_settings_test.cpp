#include "ranklog/sync/server_settings.hpp"

#include <gtest/gtest.h>

#include "fakes.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/sync/url.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::sync {
namespace {

using ranklog::test::TempDir;
using ranklog::test::write_file;
using test::environment_of;

const std::string kKey(40, 'k');
const std::string kOtherKey(40, 'o');

std::string failure_of(const std::function<void()>& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

class CredentialsTest : public ::testing::Test {
 protected:
  Credentials find(std::map<std::string, std::string> variables,
                   const std::string& base_url = "http://localhost:8080") {
    variables.emplace("HOME", home_.path().string());
    ServerSettings server;
    server.base_url = base_url;
    return find_credentials(server, environment_of(std::move(variables)));
  }
  void netrc(const std::string& text, const std::string& name = ".netrc") { write_file(home_ / name, text); }

  TempDir home_;
};

TEST_F(CredentialsTest, EnvironmentWinsOverNetrc) {
  netrc("machine localhost:8080 login user password " + kOtherKey);
  const Credentials found = find({{"WANDB_API_KEY", kKey}});
  EXPECT_EQ(found.api_key, kKey);
  EXPECT_EQ(found.source, "WANDB_API_KEY");
}

TEST_F(CredentialsTest, NetrcHostIncludesThePort) {
  netrc("machine localhost login user password " + kOtherKey +
        "\nmachine localhost:8080 login user password " + kKey);
  EXPECT_EQ(find({}).api_key, kKey);
  EXPECT_EQ(find({}, "http://localhost").api_key, kOtherKey);
}

TEST_F(CredentialsTest, NetrcDefaultEntryIsHonoured) {
  netrc("machine elsewhere login user password " + kOtherKey + "\ndefault login user password " + kKey);
  EXPECT_EQ(find({}).api_key, kKey);
}

TEST_F(CredentialsTest, NetrcVariableNamesAnotherFile) {
  netrc("machine localhost:8080 login user password " + kOtherKey);
  netrc("machine localhost:8080 login user password " + kKey, "mine");
  EXPECT_EQ(find({{"NETRC", "~/mine"}}).api_key, kKey);
}

TEST_F(CredentialsTest, UnderscoreNetrcIsReadWhereThereIsNoOther) {
  netrc("machine localhost:8080 login user password " + kKey, "_netrc");
  EXPECT_EQ(find({}).api_key, kKey);
}

TEST_F(CredentialsTest, MissingKeyNamesVariableFileAndHost) {
  const std::string message = failure_of([&] { (void)find({}); }, ErrorCode::kUnauthorized);
  EXPECT_NE(message.find("WANDB_API_KEY"), std::string::npos);
  EXPECT_NE(message.find(".netrc"), std::string::npos);
  EXPECT_NE(message.find("localhost:8080"), std::string::npos);
}

TEST_F(CredentialsTest, RefusedKeyIsNotRepeatedInTheMessage) {
  const std::string message =
      failure_of([&] { (void)find({{"WANDB_API_KEY", "tooshortsecret"}}); }, ErrorCode::kUnauthorized);
  EXPECT_EQ(message.find("tooshortsecret"), std::string::npos);
  EXPECT_NE(message.find("at least 40"), std::string::npos);
}

TEST(NetrcTest, ReadsQuotesCommentsAndMacros) {
  const std::string text =
      "# a comment with machine h password wrong\n"
      "macdef init\nmachine h password wrong\n\n"
      "machine \"h\" login 'some one' account a password 'pass word'\n";
  EXPECT_EQ(netrc_password(text, "h"), "pass word");
}

TEST(NetrcTest, HostWithoutAnEntryHasNoPassword) {
  EXPECT_EQ(netrc_password("machine a login u password p", "b"), std::nullopt);
  EXPECT_EQ(netrc_password("", "b"), std::nullopt);
  EXPECT_EQ(netrc_password("machine", "b"), std::nullopt);
}

TEST(ApiKeyTest, ShapesThatPassAndShapesThatDoNot) {
  const struct {
    std::string key;
    bool good;
  } kTable[] = {
      {std::string(40, 'a'), true},
      {std::string(86, 'a'), true},
      {"wandb_v1_" + std::string(40, 'A'), true},
      {"local-" + std::string(40, '9'), true},
      {"local-x-" + std::string(40, '9'), true},
      {"aaa.bbb-_.ccc", true},
      {"local-" + std::string(39, '9'), false},
      {std::string(39, 'a'), false},
      {"", false},
      {" " + std::string(40, 'a'), false},
      {std::string(40, 'a') + "\n", false},
      {std::string(20, 'a') + "$" + std::string(20, 'a'), false},
      {"aaa..ccc", false},
      {"aaa.bbb", false},
  };
  for (const auto& row : kTable) EXPECT_EQ(api_key_fault(row.key).empty(), row.good) << row.key;
}

TEST(ServerSettingsTest, EnvironmentOverLocalOverGlobalSettings) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "wandb");
  std::filesystem::create_directories(dir / "global");
  write_file(dir / "global" / "settings", "[default]\nbase_url = https://global.example\nentity = g\n");
  std::map<std::string, std::string> variables = {{"WANDB_DIR", dir.path().string()},
                                                  {"WANDB_CONFIG_DIR", (dir / "global").string()}};
  EXPECT_EQ(find_server(environment_of(variables)).base_url, "https://global.example");
  write_file(dir / "wandb" / "settings",
             "[other]\nbase_url = no\n[default]\nbase_url: https://local.example/\n");
  EXPECT_EQ(find_server(environment_of(variables)).base_url, "https://local.example");
  EXPECT_EQ(find_server(environment_of(variables)).entity, "g");
  variables["WANDB_BASE_URL"] = "http://localhost:8080/prefix/";
  EXPECT_EQ(find_server(environment_of(variables)).base_url, "http://localhost:8080/prefix");
}

TEST(ServerSettingsTest, DefaultsAreWandbsOwn) {
  const ServerSettings server = find_server(environment_of({{"WANDB_DIR", "/nowhere"}}));
  EXPECT_EQ(server.base_url, "https://api.wandb.ai");
  EXPECT_EQ(server.app_url, "https://wandb.ai");
  EXPECT_TRUE(server.verify_tls);
}

TEST(ServerSettingsTest, UnusableValuesAreRefusedByName) {
  const struct {
    std::string variable, value;
  } kTable[] = {{"WANDB_BASE_URL", "https://wandb.ai"},
                {"WANDB_BASE_URL", "http://api.wandb.ai"},
                {"WANDB_BASE_URL", "api.wandb.ai"},
                {"WANDB_BASE_URL", "ftp://api.example"},
                {"WANDB_BASE_URL", "https://user:secret@api.example"},
                {"WANDB_BASE_URL", "https://"},
                {"WANDB_BASE_URL", "http://localhost:"},
                {"WANDB_BASE_URL", "http://localhost:80a"},
                {"WANDB_HTTP_TIMEOUT", "soon"},
                {"WANDB_HTTP_TIMEOUT", "0"}};
  for (const auto& row : kTable) {
    const std::string message = failure_of(
        [&] { (void)find_server(environment_of({{"WANDB_DIR", "/nowhere"}, {row.variable, row.value}})); },
        ErrorCode::kUsage);
    EXPECT_NE(message.find(row.variable), std::string::npos) << message;
    EXPECT_EQ(message.find("secret"), std::string::npos);
  }
}

TEST(ServerSettingsTest, AppAddressFollowsFromTheApiAddress) {
  EXPECT_EQ(app_url_of("https://api.wandb.ai"), "https://wandb.ai");
  EXPECT_EQ(app_url_of("https://api.wandb.test"), "https://app.wandb.test");
  EXPECT_EQ(app_url_of("https://api.acme.example"), "https://app.acme.example");
  EXPECT_EQ(app_url_of("http://localhost:8080"), "http://localhost:8080");
}

TEST(UrlTest, ComponentsAreEncodedByteForByte) {
  EXPECT_EQ(percent_encode("a-b_c.d~e"), "a-b_c.d~e");
  EXPECT_EQ(percent_encode("a b/\xC3\xA9?#%"), "a%20b%2F%C3%A9%3F%23%25");
}

}  // namespace
}  // namespace ranklog::sync
