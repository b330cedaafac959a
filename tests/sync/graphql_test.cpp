#include "graphql.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fakes.hpp"
#include "ranklog/schema/digest.hpp"
#include "wandb_api.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;
using test::answer;
using test::FakeClock;
using test::ScriptedTransport;

const std::string kKey(40, 'k');

class GraphqlTest : public ::testing::Test {
 protected:
  GraphqlTest() {
    settings_.base_url = "http://localhost:8080";
    settings_.username = "somebody";
  }
  // The error of a call that the server answers like this.
  Error failure(const HttpResponse& response) {
    ScriptedTransport transport({response});
    HttpClient http(transport, clock_, stop_, {});
    const ServerAccess access(settings_, {kKey, "WANDB_API_KEY"});
    GraphqlClient graphql(http, access);
    try {
      (void)graphql.call("Op", "query Op { x }", json::object(), "doing x");
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error(ErrorCode::kUsage, "");
  }

  ServerSettings settings_;
  FakeClock clock_;
  StopFlag stop_;
};

TEST_F(GraphqlTest, RequestCarriesOperationNameAndKey) {
  ScriptedTransport transport({answer(200, R"({"data":{"x":1}})")});
  HttpClient http(transport, clock_, stop_, {});
  const ServerAccess access(settings_, {kKey, "WANDB_API_KEY"});
  const json data =
      GraphqlClient(http, access).call("Op", "query Op { x }", {{"name", "caf\xE9"}}, "doing x");
  EXPECT_EQ(data, json::parse(R"({"x":1})"));
  const HttpRequest& sent = transport.requests.at(0);
  EXPECT_EQ(sent.url, "http://localhost:8080/graphql");
  const json body = json::parse(sent.body);
  EXPECT_EQ(body["operationName"], "Op");
  EXPECT_EQ(body["variables"]["name"], "caf\xEF\xBF\xBD");
  const std::pair<std::string, std::string> authorization{"Authorization", "Basic " + base64("api:" + kKey)};
  EXPECT_NE(std::ranges::find(sent.headers, authorization), sent.headers.end());
}

TEST_F(GraphqlTest, RefusedKeyNamesServerAndSource) {
  const Error error = failure(answer(401, R"({"errors":[{"message":"user is not logged in"}]})"));
  EXPECT_EQ(error.code(), ErrorCode::kUnauthorized);
  const std::string message = error.what();
  EXPECT_NE(message.find("localhost:8080"), std::string::npos);
  EXPECT_NE(message.find("WANDB_API_KEY"), std::string::npos);
  EXPECT_EQ(message.find(kKey), std::string::npos);
}

TEST_F(GraphqlTest, ErrorsComeInThreeShapes) {
  for (const char* body : {R"({"errors":[{"message":"went wrong","path":["x"]}],"data":null})",
                           R"({"error":"went wrong"})", R"({"error":{"message":"went wrong"}})"}) {
    for (const int status : {200, 400}) {
      const Error error = failure(answer(status, body));
      EXPECT_EQ(error.code(), ErrorCode::kServer);
      EXPECT_NE(std::string(error.what()).find("went wrong"), std::string::npos) << error.what();
    }
  }
}

TEST_F(GraphqlTest, PermissionDeniedIsAQuestionOfRights) {
  EXPECT_EQ(failure(answer(200, R"({"errors":[{"message":"permission denied"}]})")).code(),
            ErrorCode::kUnauthorized);
  EXPECT_EQ(failure(answer(403, "")).code(), ErrorCode::kUnauthorized);
}

TEST_F(GraphqlTest, ReplyOfSomethingElseIsNamed) {
  EXPECT_NE(std::string(failure(answer(200, "<html>")).what()).find("WANDB_BASE_URL"), std::string::npos);
}

TEST_F(GraphqlTest, UploadAddressesNeverGetTheKey) {
  const ServerAccess access(settings_, {kKey, "WANDB_API_KEY"});
  for (const char* address : {"https://storage.example/x?sig=1", "/relative", "http://localhost:8080/put"}) {
    for (const auto& [name, value] : access.put(address).headers) {
      EXPECT_NE(name, "Authorization");
      EXPECT_EQ(value.find(kKey), std::string::npos);
    }
  }
  EXPECT_EQ(access.put("/relative").url, "http://localhost:8080/relative");
}

class UpsertTest : public GraphqlTest {
 protected:
  Error refusal(const HttpResponse& response) {
    ScriptedTransport transport({response});
    HttpClient http(transport, clock_, stop_, {});
    const ServerAccess access(settings_, {kKey, "WANDB_API_KEY"});
    RunHeader header;
    header.run_id = "r1";
    header.entity = "acme";
    header.project = "llm";
    try {
      (void)WandbApi(http, access).upsert_run(header, "jane");
    } catch (const Error& error) {
      tries_ = transport.requests.size();
      return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error(ErrorCode::kUsage, "");
  }
  std::size_t tries_ = 0;
};

TEST_F(UpsertTest, ForbiddenNamesEntityProjectAndUser) {
  const Error error = refusal(answer(403, R"({"errors":[{"message":"permission denied"}]})"));
  EXPECT_EQ(error.code(), ErrorCode::kUnauthorized);
  for (const char* name : {"acme", "llm", "jane", "r1"}) {
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
}

TEST_F(UpsertTest, DeletedIdIsFinalWhereBusyIsNot) {
  const Error busy = refusal(answer(409, "busy"));
  EXPECT_EQ(busy.code(), ErrorCode::kTemporary);
  EXPECT_GT(tries_, 1U);
  const Error deleted = refusal(answer(
      409,
      R"({"errors":[{"message":"run acme/llm/r1 was previously created and deleted; try a new run name"}]})"));
  EXPECT_EQ(deleted.code(), ErrorCode::kServer);
  EXPECT_NE(std::string(deleted.what()).find("--id"), std::string::npos);
  EXPECT_EQ(tries_, 1U);
}

}  // namespace
}  // namespace ranklog::sync
