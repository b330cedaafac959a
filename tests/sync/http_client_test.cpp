#include "ranklog/sync/http_client.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "fakes.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog::sync {
namespace {

using std::chrono::milliseconds;
using test::answer;
using test::FakeClock;
using test::no_answer;
using test::ScriptedTransport;

class HttpClientTest : public ::testing::Test {
 protected:
  HttpClient client(ScriptedTransport& transport, milliseconds patience = std::chrono::minutes(10)) {
    return {transport,
            clock_,
            stop_,
            {patience, [this](const std::string& text) { notices_.push_back(text); }, {}}};
  }
  static HttpRequest request() {
    HttpRequest out;
    out.url = "http://server/path";
    return out;
  }
  ErrorCode failure(HttpClient& http) {
    try {
      (void)http.send(Endpoint::kFileStream, request(), "history of run r");
    } catch (const Error& error) {
      message_ = error.what();
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::kUsage;
  }

  FakeClock clock_;
  StopFlag stop_;
  std::vector<std::string> notices_;
  std::string message_;
};

TEST_F(HttpClientTest, PassingFaultsAreOutlastedAndTold) {
  ScriptedTransport transport({no_answer(Delivery::kNotSent), answer(503, "busy"), answer(200, "fine")});
  HttpClient http = client(transport);
  EXPECT_EQ(http.send(Endpoint::kGraphql, request(), "asking").body, "fine");
  EXPECT_EQ(clock_.slept(), milliseconds(2'000 + 4'000));
  ASSERT_EQ(notices_.size(), 2U);
  EXPECT_EQ(notices_[0], "asking: server: connection refused; trying again in 2 s");
  EXPECT_EQ(notices_[1], "asking: server: 503 (busy); trying again in 4 s");
}

TEST_F(HttpClientTest, FinalRefusalComesBackAtOnce) {
  ScriptedTransport transport({answer(403, "no")});
  HttpClient http = client(transport);
  EXPECT_EQ(http.send(Endpoint::kGraphql, request(), "asking").status, 403);
  EXPECT_EQ(transport.requests.size(), 1U);
}

TEST_F(HttpClientTest, ServerThatIsGoneEndsWithinThePatience) {
  ScriptedTransport transport({no_answer(Delivery::kNotSent)});
  HttpClient http = client(transport, std::chrono::seconds(60));
  EXPECT_EQ(failure(http), ErrorCode::kTemporary);
  EXPECT_LE(clock_.slept(), milliseconds(60'000));
  EXPECT_GE(clock_.slept(), milliseconds(30'000));
  // The next request of the same round does not wait all over again.
  const milliseconds before = clock_.slept();
  EXPECT_EQ(failure(http), ErrorCode::kTemporary);
  EXPECT_LE(clock_.slept() - before, milliseconds(60'000) - before);
}

TEST_F(HttpClientTest, RetryAfterBeyondThePatienceIsNotSatOut) {
  ScriptedTransport transport({answer(429, "", {{"retry-after", "3600"}})});
  HttpClient http = client(transport, std::chrono::seconds(60));
  EXPECT_EQ(failure(http), ErrorCode::kTemporary);
  EXPECT_EQ(clock_.slept(), milliseconds(0));
  EXPECT_NE(message_.find("asks to wait 3600 s"), std::string::npos) << message_;
}

TEST_F(HttpClientTest, SuccessRenewsThePatience) {
  ScriptedTransport transport({answer(500), answer(500), answer(500), answer(500), answer(200), answer(500),
                               answer(500), answer(500), answer(500), answer(200)});
  HttpClient http = client(transport, std::chrono::seconds(40));
  EXPECT_TRUE(http.send(Endpoint::kFileStream, request(), "x").ok());
  EXPECT_TRUE(http.send(Endpoint::kFileStream, request(), "x").ok());
}

// Questions that are answered say nothing about history that is not taken.
TEST_F(HttpClientTest, SuccessOfAnotherKindDoesNotRenewThePatience) {
  ScriptedTransport transport({answer(503)});
  HttpClient failing = client(transport, std::chrono::seconds(60));
  int attempts = 0;
  ErrorCode code = ErrorCode::kUsage;
  for (; attempts < 100 && code == ErrorCode::kUsage; ++attempts) {
    const HttpResponse response = failing.attempt(request(), "history of run r");
    try {
      (void)failing.settle(Endpoint::kFileStream, attempts, request(), response, "history of run r");
    } catch (const Error& error) {
      code = error.code();
    }
    transport.answer_next(answer(200));
    (void)failing.attempt(request(), "asking for a count");
  }
  EXPECT_EQ(code, ErrorCode::kTemporary);
  EXPECT_LT(attempts, 10);
}

TEST_F(HttpClientTest, ReplyThatRepeatsASecretIsMasked) {
  ScriptedTransport transport({answer(403, "bad header Basic c2VjcmV0 of key s3cret")});
  HttpClient http(transport, clock_, stop_, {std::chrono::minutes(1), {}, {"c2VjcmV0", "s3cret"}});
  EXPECT_EQ(http.send(Endpoint::kGraphql, request(), "x").body, "bad header Basic *** of key ***");
}

TEST(DescribeFailureTest, OfAStoragesReplyOnlyStatusAndCodeAreTold) {
  const std::string xml =
      "<?xml "
      "version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><StringToSign>PRIVATE</StringToSign></"
      "Error>";
  EXPECT_EQ(describe_failure(Endpoint::kUpload, answer(403, xml)), "403 (SignatureDoesNotMatch)");
  EXPECT_EQ(describe_failure(Endpoint::kUpload, answer(502, "<html>request: PUT /x?sig=PRIVATE")), "502");
  EXPECT_EQ(describe_failure(Endpoint::kGraphql, answer(503, "busy\x1b[2J\n")), "503 (busy [2J )");
}

TEST_F(HttpClientTest, StopIsNoticedBeforeARequestAndWhileWaiting) {
  ScriptedTransport transport({answer(500)});
  HttpClient http = client(transport);
  HttpRequest waiting = request();
  waiting.while_waiting = [this] { stop_.raise(SIGINT); };
  EXPECT_THROW((void)http.send(Endpoint::kGraphql, waiting, "x"), Error);
  EXPECT_EQ(transport.requests.size(), 1U);
  EXPECT_EQ(failure(http), ErrorCode::kInterrupted);
  EXPECT_EQ(transport.requests.size(), 1U);
}

TEST_F(HttpClientTest, ChangedFileIsNamedAsDamage) {
  HttpResponse changed = no_answer(Delivery::kSourceChanged);
  changed.fault = "model.pt has changed since it was logged";
  ScriptedTransport transport({changed});
  HttpClient http = client(transport);
  EXPECT_EQ(failure(http), ErrorCode::kDamaged);
  EXPECT_NE(message_.find("model.pt has changed"), std::string::npos);
}

}  // namespace
}  // namespace ranklog::sync
