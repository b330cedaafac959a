#include "ranklog/schema/captured_file.hpp"

#include <gtest/gtest.h>

#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

TEST(Removals, CoverThePathAndWhatLiesInIt) {
  const test::TempDir dir;
  test::RankFileBuilder builder(dir / "rank-00000.db", test::identity_of_rank(0));
  const auto event = [](std::string kind, std::string json) {
    return Event{0, 0, std::nullopt, std::move(kind), std::move(json)};
  };
  builder.operation(event("checkpoint-removed", R"({"path":"checkpoints/step-1","reason":"keep"})"))
      .operation(event("checkpoint", R"({"path":"checkpoints/step-2"})"))
      .operation(event("checkpoint-removed", R"({"path":""})"))
      .operation(event("checkpoint-removed", R"({"path":7})"))
      .operation(event("checkpoint-removed", "[]"));
  Removals removals;
  removals.add(RankFile::open(builder.path()));
  EXPECT_TRUE(removals.covers("checkpoints/step-1"));
  EXPECT_TRUE(removals.covers("checkpoints/step-1/shards/0.pt"));
  for (const char* other : {"checkpoints/step-10", "checkpoints/step-2/model.pt", "checkpoints", "", "/"}) {
    EXPECT_FALSE(removals.covers(other)) << other;
  }
}

}  // namespace
}  // namespace ranklog
