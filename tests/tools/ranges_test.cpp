#include "ranklog/cli/ranges.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "ranklog/schema/error.hpp"

namespace ranklog::cli {
namespace {

TEST(Ranges, RanksAreListsOfRanges) {
  const RankSet set = RankSet::parse("0-3,7");
  for (const int rank : {0, 3, 7}) EXPECT_TRUE(set.holds(rank)) << rank;
  for (const int rank : {4, 6, 8}) EXPECT_FALSE(set.holds(rank)) << rank;
  EXPECT_TRUE(RankSet::parse("").holds(12345));
}

TEST(Ranges, WhatIsNoRankIsRefusedByName) {
  for (const char* text : {"x", "1-", "-1", "3-1", "1;2", "0x1", "99999999999"}) {
    try {
      (void)RankSet::parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

TEST(Ranges, StepsHoldBothEnds) {
  EXPECT_TRUE(parse_steps("100:200").holds(200));
  EXPECT_FALSE(parse_steps("100:200").holds(201));
  EXPECT_EQ(parse_steps("100:").high, std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(parse_steps(":200").holds(0));
  EXPECT_TRUE(parse_steps("7").holds(7));
  EXPECT_FALSE(parse_steps("7").holds(8));
  for (const char* text : {":", "", "a:b", "5:4", "1:2:3"})
    EXPECT_THROW((void)parse_steps(text), Error) << text;
}

}  // namespace
}  // namespace ranklog::cli
