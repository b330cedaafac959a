#include "launch_seat.hpp"

#include <gtest/gtest.h>

#include <future>

#include "ranklog/schema/error.hpp"

namespace ranklog::test {
namespace {

using namespace std::chrono_literals;

SeatRequest request(int rank, int size, std::chrono::milliseconds timeout = 60s) {
  return {rank, size, "host:29500", timeout};
}

std::future<std::int64_t> join_later(KeyStore& keys, const SeatRequest& request) {
  return std::async(std::launch::async, [&keys, request] { return join_launch(keys, request); });
}

std::string refusal(KeyStore& keys, const SeatRequest& request, ErrorCode expected) {
  try {
    (void)join_launch(keys, request);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), expected);
    return e.what();
  }
  return "nothing was refused";
}

TEST(LaunchSeat, RanksThatComeInAnyOrderAgreeOnOneLaunch) {
  MemoryKeyStore keys;
  auto two = join_later(keys, request(2, 3));
  auto one = join_later(keys, request(1, 3));
  auto zero = join_later(keys, request(0, 3));
  const std::int64_t launch = zero.get();
  EXPECT_EQ(one.get(), launch);
  EXPECT_EQ(two.get(), launch);
}

// A rank of the new launch may come while the store still holds the keys of the last one only.
TEST(LaunchSeat, ANewLaunchInTheSameStoreIsAnotherOneWhoeverComesFirst) {
  MemoryKeyStore keys;
  std::int64_t last = 0;
  for (int launch = 0; launch < 5; ++launch) {
    auto one = join_later(keys, request(1, 2));
    std::this_thread::sleep_for(5ms);  // mostly, rank 1 has looked by then; the result is the same if not
    auto zero = join_later(keys, request(0, 2));
    EXPECT_GT(zero.get(), last);
    last = one.get();
  }
  EXPECT_EQ(last, 5);
}

TEST(LaunchSeat, ASeatThatARankOfAnEarlierLaunchNeverTookLeadsNobodyIntoIt) {
  MemoryKeyStore keys;
  auto gone = join_later(keys, request(0, 2, 50ms));  // its rank 1 never came
  EXPECT_THROW((void)gone.get(), Error);
  auto one = join_later(keys, request(1, 2));
  auto zero = join_later(keys, request(0, 2));
  EXPECT_EQ(zero.get(), 2);
  EXPECT_EQ(one.get(), 2);
}

TEST(LaunchSeat, WhoeverDoesNotComeIsNamed) {
  MemoryKeyStore keys;
  EXPECT_EQ(refusal(keys, request(0, 3, 50ms), ErrorCode::kTimeout),
            "ranks 1 and 2 did not come to the job's store at host:29500 within 50 ms");
  MemoryKeyStore empty;
  EXPECT_EQ(refusal(empty, request(1, 3, 50ms), ErrorCode::kTimeout),
            "rank 0 did not come to the job's store at host:29500");
}

// Rank 1 has its answer and waits for rank 2 elsewhere by then.
TEST(LaunchSeat, WhoeverDoesNotComeIsNamedToThoseThatHaveTheirSeatToo) {
  MemoryKeyStore keys;
  auto zero = join_later(keys, request(0, 3, 500ms));
  const std::int64_t launch = join_launch(keys, request(1, 3));
  EXPECT_THROW((void)zero.get(), Error);
  EXPECT_EQ(keys.get(launch_name(launch) + "/failure"),
            "rank 2 did not come to the job's store at host:29500 within 500 ms");
}

TEST(LaunchSeat, ARankThatExistsTwiceIsNamed) {
  MemoryKeyStore keys;
  auto zero = join_later(keys, request(0, 2));
  const std::int64_t launch = join_launch(keys, request(1, 2));
  EXPECT_EQ(zero.get(), launch);
  const std::string what = refusal(keys, request(1, 2, 50ms), ErrorCode::kUsage);
  EXPECT_NE(what.find("rank 1 is already taken"), std::string::npos) << what;
}

TEST(LaunchSeat, AnotherSizeIsRefused) {
  MemoryKeyStore keys;
  auto zero = join_later(keys, request(0, 2));
  const std::string what = refusal(keys, request(1, 4), ErrorCode::kUsage);
  EXPECT_NE(what.find("told of 4 ranks, but the job at host:29500 has 2"), std::string::npos) << what;
  const std::int64_t launch = join_launch(keys, request(1, 2));
  EXPECT_EQ(zero.get(), launch);
}

}  // namespace
}  // namespace ranklog::test
