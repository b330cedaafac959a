#include "ranklog/schema/suggest.hpp"

#include <gtest/gtest.h>

namespace ranklog {
namespace {

using Names = std::vector<std::string>;

TEST(Suggest, DistanceCountsTypingSlips) {
  EXPECT_EQ(edit_distance("loss", "loss"), 0u);
  EXPECT_EQ(edit_distance("loss", "Loss"), 0u);
  EXPECT_EQ(edit_distance("los", "loss"), 1u);
  EXPECT_EQ(edit_distance("lsos", "loss"), 1u);  // a swap is one slip
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(Suggest, TheNearestNameComesFirst) {
  const Names known{"accuracy", "loss", "lr", "train/loss", "grad_norm"};
  EXPECT_EQ(nearest("losss", known), (Names{"loss"}));
  EXPECT_EQ(nearest("los", known), (Names{"loss", "train/loss"}));
  EXPECT_EQ(nearest("acuracy", known), (Names{"accuracy"}));
  EXPECT_EQ(nearest("norm", known), (Names{"grad_norm"}));
}

TEST(Suggest, NothingIsSuggestedForWhatResemblesNothing) {
  EXPECT_TRUE(nearest("perplexity", Names{"loss", "lr"}).empty());
}

TEST(Suggest, AlternativesReadAsASentence) {
  EXPECT_EQ(join_alternatives(Names{}), "");
  EXPECT_EQ(join_alternatives(Names{"a"}), "a");
  EXPECT_EQ(join_alternatives(Names{"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace ranklog
