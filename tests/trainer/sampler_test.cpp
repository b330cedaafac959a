#include "ranklog/trainer/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ranklog/schema/error.hpp"

namespace ranklog::test {
namespace {

TEST(Sampler, NoSampleComesTwiceInAnEpoch) {
  DistributedSampler sampler(100, 8, 4, 1);
  ASSERT_EQ(sampler.steps_per_epoch(), 3);
  std::set<std::size_t> seen;
  for (std::int64_t step = 0; step < 3; ++step) {
    for (int rank = 0; rank < 4; ++rank) {
      for (const std::size_t index : sampler.batch(0, step, rank)) {
        EXPECT_LT(index, 100U);
        EXPECT_TRUE(seen.insert(index).second) << index << " came twice";
      }
    }
  }
  EXPECT_EQ(seen.size(), 96U);
}

TEST(Sampler, TheGlobalBatchDoesNotDependOnHowManyRanksShareIt) {
  DistributedSampler one(1000, 32, 1, 7);
  DistributedSampler four(1000, 8, 4, 7);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    for (std::int64_t step = 0; step < one.steps_per_epoch(); ++step) {
      std::vector<std::size_t> joined;
      for (int rank = 0; rank < 4; ++rank) {
        const auto part = four.batch(epoch, step, rank);
        joined.insert(joined.end(), part.begin(), part.end());
      }
      EXPECT_EQ(joined, one.batch(epoch, step, 0));
    }
  }
}

TEST(Sampler, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  DistributedSampler sampler(1000, 32, 1, 7);
  const auto first = sampler.batch(0, 0, 0);
  EXPECT_NE(sampler.batch(1, 0, 0), first);
  EXPECT_NE(DistributedSampler(1000, 32, 1, 8).batch(0, 0, 0), first);
  // Epoch 1 of seed 7 must not be epoch 0 of seed 8.
  EXPECT_NE(DistributedSampler(1000, 32, 1, 8).batch(0, 0, 0), sampler.batch(1, 0, 0));
}

TEST(Sampler, APositionCanBeAskedForAtAnyTime) {
  DistributedSampler sampler(1000, 32, 1, 7);
  const auto wanted = sampler.batch(3, 5, 0);
  (void)sampler.batch(9, 0, 0);
  EXPECT_EQ(sampler.batch(3, 5, 0), wanted);
  EXPECT_EQ(DistributedSampler(1000, 32, 1, 7).batch(3, 5, 0), wanted);
}

// Made with CPython: splitmix64's finaliser and an MT19937-64 written from their papers.
TEST(Sampler, TheOrderIsFrozen) {
  EXPECT_EQ(shuffled_indices(8, 1), (std::vector<std::size_t>{1, 4, 6, 0, 5, 2, 7, 3}));
}

TEST(Sampler, ABatchLargerThanTheDataIsRefused) {
  try {
    DistributedSampler sampler(100, 32, 4, 1);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(e.what()).find("--batch_size"), std::string::npos);
  }
}

}  // namespace
}  // namespace ranklog::test
