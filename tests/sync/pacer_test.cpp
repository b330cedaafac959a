#include "pacer.hpp"

#include <gtest/gtest.h>

#include "fakes.hpp"

namespace ranklog::sync {
namespace {

using std::chrono::milliseconds;
using test::answer;

class PacerTest : public ::testing::Test {
 protected:
  // Requests that are allowed within `limit`, with each wait kept.
  int requests_in(std::chrono::seconds limit) {
    int count = 0;
    while (true) {
      now_ += pacer_.take(now_);
      if (now_ - Pacer::TimePoint() > limit) return count;
      ++count;
    }
  }
  void observe(const char* remaining, const char* reset) {
    pacer_.observe(answer(200, "", {{"ratelimit-remaining", remaining}, {"ratelimit-reset", reset}}));
  }

  Pacer::TimePoint now_{};
  Pacer pacer_{now_};
};

TEST_F(PacerTest, BurstGoesAtOnceThenTwoASecond) {
  const int in_a_minute = requests_in(std::chrono::seconds(60));
  EXPECT_GE(in_a_minute, 60 * 2);
  EXPECT_LE(in_a_minute, 60 * 2 + 10);
}

TEST_F(PacerTest, SmallUploadsDoNotWait) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(pacer_.take(now_), milliseconds(0));
  EXPECT_GT(pacer_.take(now_), milliseconds(0));
}

TEST_F(PacerTest, ServersLimitSlowsItDown) {
  observe("30", "60");
  const int in_a_minute = requests_in(std::chrono::seconds(60));
  EXPECT_GE(in_a_minute, 25);
  EXPECT_LE(in_a_minute, 31);
}

TEST_F(PacerTest, NothingLeftMeansOneRequestInTenSeconds) {
  observe("0", "60");
  EXPECT_LE(requests_in(std::chrono::seconds(60)), 6);
}

TEST_F(PacerTest, GenerousLimitDoesNotSpeedItUp) {
  observe("100000", "60");
  EXPECT_LE(requests_in(std::chrono::seconds(60)), 60 * 2 + 10);
}

TEST_F(PacerTest, NonsenseIsIgnored) {
  observe("nan", "60");
  observe("-5", "60");
  observe("0", "0.5");
  observe("0", "x");
  EXPECT_GE(requests_in(std::chrono::seconds(60)), 60 * 2);
}

}  // namespace
}  // namespace ranklog::sync
