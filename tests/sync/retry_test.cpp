#include "ranklog/sync/retry.hpp"

#include <gtest/gtest.h>

#include "fakes.hpp"

namespace ranklog::sync {
namespace {

using std::chrono::milliseconds;
using test::answer;
using test::no_answer;
using Action = Verdict::Action;

constexpr std::int64_t kNow = 1'700'000'000;

Verdict judged(Endpoint endpoint, const HttpResponse& response, int attempt = 0, double random = 0) {
  return judge(endpoint, attempt, response, random, kNow);
}

TEST(RetryTest, StatusTable) {
  constexpr Action kOk = Action::kDone;
  constexpr Action kAgain = Action::kRetry;
  constexpr Action kNo = Action::kGiveUp;
  const struct {
    int status;
    Action graphql, upsert, stream, upload;
  } kTable[] = {
      {200, kOk, kOk, kOk, kOk},
      {204, kOk, kOk, kOk, kOk},
      {301, kNo, kNo, kNo, kNo},
      {400, kNo, kNo, kNo, kNo},
      {401, kNo, kNo, kNo, kNo},
      {403, kNo, kNo, kNo, kNo},
      {404, kNo, kNo, kNo, kNo},
      {408, kAgain, kAgain, kAgain, kNo},
      {409, kNo, kAgain, kNo, kNo},
      {410, kNo, kNo, kNo, kNo},
      {413, kNo, kNo, kNo, kNo},
      {418, kAgain, kAgain, kAgain, kNo},
      {422, kNo, kNo, kNo, kNo},
      {429, kAgain, kAgain, kAgain, kAgain},
      {500, kAgain, kAgain, kAgain, kAgain},
      {501, kNo, kNo, kNo, kNo},
      {502, kAgain, kAgain, kAgain, kAgain},
      {503, kAgain, kAgain, kAgain, kAgain},
      {504, kAgain, kAgain, kAgain, kAgain},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(judged(Endpoint::kGraphql, answer(row.status)).action, row.graphql) << row.status;
    EXPECT_EQ(judged(Endpoint::kUpsert, answer(row.status)).action, row.upsert) << row.status;
    EXPECT_EQ(judged(Endpoint::kFileStream, answer(row.status)).action, row.stream) << row.status;
    EXPECT_EQ(judged(Endpoint::kUpload, answer(row.status)).action, row.upload) << row.status;
  }
}

TEST(RetryTest, OnlyWhatTheServerMayHaveSeenIsDoubtful) {
  EXPECT_TRUE(judged(Endpoint::kFileStream, no_answer(Delivery::kUnclear)).may_have_acted);
  EXPECT_TRUE(judged(Endpoint::kFileStream, answer(500)).may_have_acted);
  EXPECT_TRUE(judged(Endpoint::kFileStream, answer(503)).may_have_acted);
  EXPECT_TRUE(judged(Endpoint::kFileStream, answer(408)).may_have_acted);
  EXPECT_FALSE(judged(Endpoint::kFileStream, no_answer(Delivery::kNotSent)).may_have_acted);
  EXPECT_FALSE(judged(Endpoint::kFileStream, answer(429)).may_have_acted);
}

TEST(RetryTest, WaitsDoubleWithJitterUpToAMinute) {
  const auto wait = [](int attempt, double random) {
    return judged(Endpoint::kFileStream, answer(500), attempt, random).wait;
  };
  EXPECT_EQ(wait(0, 0), milliseconds(2'000));
  EXPECT_EQ(wait(0, 0.999), milliseconds(2'499));
  EXPECT_EQ(wait(1, 0), milliseconds(4'000));
  EXPECT_EQ(wait(4, 0), milliseconds(32'000));
  EXPECT_EQ(wait(5, 0), milliseconds(60'000));
  EXPECT_EQ(wait(1'000'000, 0.5), milliseconds(60'000));
}

TEST(RetryTest, RetryAfterIsTakenAsItIs) {
  const auto wait = [](const std::string& text) {
    return judged(Endpoint::kGraphql, answer(429, "", {{"retry-after", text}})).wait;
  };
  EXPECT_EQ(wait("7"), milliseconds(7'000));
  EXPECT_EQ(wait("0.25"), milliseconds(250));
  EXPECT_EQ(wait("3600"), milliseconds(3'600'000));
  EXPECT_EQ(wait("Tue, 14 Nov 2023 22:13:30 GMT"), milliseconds(10'000));
  for (const char* nonsense : {"", "soon", "-3", "nan", "inf", "1e99", "7 s"}) {
    EXPECT_EQ(wait(nonsense), milliseconds(2'000)) << nonsense;
  }
}

// "At once", over and over, must not make a busy loop.
TEST(RetryTest, RetryAfterOfNoTimeLeavesTheBackOff) {
  for (const char* text : {"0", "-0", "Tue, 14 Nov 2023 22:13:00 GMT"}) {
    for (const int attempt : {0, 1, 4}) {
      const HttpResponse response = answer(429, "", {{"retry-after", text}});
      EXPECT_EQ(judged(Endpoint::kFileStream, response, attempt).wait, milliseconds(2'000 << attempt))
          << text;
    }
  }
  const HttpResponse soon = answer(429, "", {{"retry-after", "0.25"}});
  EXPECT_EQ(judged(Endpoint::kFileStream, soon, 0).wait, milliseconds(250));
  EXPECT_EQ(judged(Endpoint::kFileStream, soon, 1).wait, milliseconds(1'000));
}

TEST(RetryTest, TriesAreBoundedWherePatienceIsNot) {
  EXPECT_EQ(judged(Endpoint::kGraphql, answer(500), 18).action, Action::kRetry);
  EXPECT_EQ(judged(Endpoint::kGraphql, answer(500), 19).action, Action::kGiveUp);
  EXPECT_EQ(judged(Endpoint::kFileStream, answer(500), 500).action, Action::kRetry);
}

TEST(RetryTest, RefusedCertificateAndChangedFileAreFinal) {
  for (const Delivery delivery : {Delivery::kUntrusted, Delivery::kSourceChanged, Delivery::kStopped}) {
    EXPECT_EQ(judged(Endpoint::kUpload, no_answer(delivery)).action, Action::kGiveUp);
  }
}

}  // namespace
}  // namespace ranklog::sync
