#include "ranklog/trainer/agreement.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "ranklog/trainer/in_process_communicator.hpp"

namespace ranklog::test {
namespace {

using namespace std::chrono_literals;

// A rank by its host and what its launcher told it: local rank, local world size, node.
struct Told {
  std::string host;
  std::optional<int> local_rank{}, local_world_size{}, node{};
};

std::vector<RankStatement> statements_of(const std::vector<Told>& ranks) {
  std::vector<RankStatement> statements;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    RankStatement statement;
    statement.host = ranks[i].host;
    statement.place = {static_cast<int>(i), static_cast<int>(ranks.size()), ranks[i].local_rank,
                       ranks[i].local_world_size, ranks[i].node};
    statements.push_back(statement);
  }
  return statements;
}

// "node.local_rank/local_world_size" of each rank.
std::vector<std::string> settle(const std::vector<Told>& ranks) {
  std::vector<std::string> texts;
  for (const Place& place : settle_places(statements_of(ranks))) {
    EXPECT_EQ(place.rank, static_cast<int>(texts.size()));
    EXPECT_EQ(place.world_size, static_cast<int>(ranks.size()));
    texts.push_back(std::to_string(place.node) + "." + std::to_string(place.local_rank) + "/" +
                    std::to_string(place.local_world_size));
  }
  return texts;
}

std::string refusal(const std::vector<Told>& ranks) {
  try {
    (void)settle_places(statements_of(ranks));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.what();
  }
  return "nothing was refused";
}

using Places = std::vector<std::string>;

TEST(Places, OneProcessNeedsToBeToldNothing) {
  EXPECT_EQ(settle({{"a"}}), (Places{"0.0/1"}));
}

TEST(Places, WhatIsToldStays) {
  EXPECT_EQ(settle({{"a", 0, 1, 0}, {"b", 0, 2, 1}, {"b", 1, 2, 1}}), (Places{"0.0/1", "1.0/2", "1.1/2"}));
  EXPECT_EQ(settle({{"a", 0, 2, 0}, {"b", 0, 2, 1}, {"a", 1, 2, 0}, {"b", 1, 2, 1}}),
            (Places{"0.0/2", "1.0/2", "0.1/2", "1.1/2"}));
}

TEST(Places, EvenNodesAreCounted) {
  const Places even{"0.0/2", "0.1/2", "1.0/2", "1.1/2"};
  EXPECT_EQ(settle({{"a", 0, 2}, {"a", 1, 2}, {"b", 0, 2}, {"b", 1, 2}}), even);
  EXPECT_EQ(settle({{"a", {}, 2}, {"a", {}, 2}, {"b", {}, 2}, {"b", {}, 2}}), even);
  EXPECT_EQ(settle({{"x", 0, 2}, {"x", 1, 2}, {"x", 0, 2}, {"x", 1, 2}}), even) << "two nodes on one host";
}

// mpirun -np 4 --host a:1,b:1,c:2, in which each rank sees a job that could be even.
TEST(Places, UnevenNodesAreToldByHost) {
  EXPECT_EQ(settle({{"a", 0, 1}, {"b", 0, 1}, {"c", 0, 2}, {"c", 1, 2}}),
            (Places{"0.0/1", "1.0/1", "2.0/2", "2.1/2"}));
}

TEST(Places, MissingLocalRanksOfUnevenNodesAreToldByHost) {
  EXPECT_EQ(settle({{"a", {}, 1}, {"b", {}, 2}, {"b", {}, 2}, {"c", {}, 1}}),
            (Places{"0.0/1", "1.0/2", "1.1/2", "2.0/1"}));
}

TEST(Places, RanksDealtOutInTurnAreToldByHost) {
  EXPECT_EQ(settle({{"a", {}, 2}, {"b", {}, 2}, {"a", {}, 2}, {"b", {}, 2}}),
            (Places{"0.0/2", "1.0/2", "0.1/2", "1.1/2"}));
}

TEST(Places, HostsThatDoNotFitWhatWasToldAreRefused) {
  const std::string what = refusal({{"x", 0, 1}, {"x", 0, 1}, {"x", 0, 2}, {"x", 1, 2}});
  EXPECT_NE(what.find("rank 0 is one of 1 by its LOCAL_WORLD_SIZE"), std::string::npos) << what;
  EXPECT_NE(what.find("ranks 0, 1, 2 and 3 have its host name 'x'"), std::string::npos) << what;
  EXPECT_NE(what.find("GROUP_RANK"), std::string::npos) << what;
}

TEST(Places, ALocalRankIsNeverGuessedFromNothing) {
  EXPECT_NE(refusal({{"a"}, {"b"}}).find("told neither LOCAL_RANK nor LOCAL_WORLD_SIZE"), std::string::npos);
}

TEST(Places, TwoRanksWithOneLocalRankAreRefused) {
  EXPECT_NE(refusal({{"a", 0, 2, 0}, {"a", 0, 2, 0}}).find("ranks 0 and 1 both have the local rank 0"),
            std::string::npos);
}

RankStatement with_settings(std::vector<std::pair<std::string, std::string>> settings) {
  RankStatement statement;
  statement.settings = std::move(settings);
  return statement;
}

TEST(Statements, TheFirstSettingThatDiffersIsNamedWithTheRank) {
  const std::vector<RankStatement> by_rank{with_settings({{"--epochs", "2"}, {"--lr", "0.05"}}),
                                           with_settings({{"--epochs", "2"}, {"--lr", "0.05"}}),
                                           with_settings({{"--epochs", "2"}, {"--lr", "0.5"}})};
  require_equal_settings(std::span(by_rank).first(2));
  try {
    require_equal_settings(by_rank);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_STREQ(
        e.what(),
        "rank 2 was started with --lr 0.5, and rank 0 with --lr 0.05; start every rank with the same "
        "settings");
  }
}

TEST(Statements, EveryRankGetsAllOfThem) {
  const auto communicators = make_in_process_communicators(2, 60s);
  std::vector<std::vector<RankStatement>> got(2);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      RankStatement mine = with_settings({{"--run_id", "caf\xc3\xa9"}});
      mine.place = {static_cast<int>(rank), 2, std::nullopt, 2, static_cast<int>(rank) + 5};
      mine.restarts = static_cast<std::int64_t>(rank);
      got[rank] = exchange_statements(mine, *communicators[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& by_rank : got) {
    ASSERT_EQ(by_rank.size(), 2U);
    EXPECT_EQ(by_rank[1].place.rank, 1);
    EXPECT_EQ(by_rank[1].place.local_rank, std::nullopt);
    EXPECT_EQ(by_rank[1].place.local_world_size, 2);
    EXPECT_EQ(by_rank[1].place.node, 6);
    EXPECT_EQ(by_rank[1].restarts, 1);
    EXPECT_FALSE(by_rank[1].host.empty());
    EXPECT_EQ(by_rank[1].settings, by_rank[0].settings);
  }
}

}  // namespace
}  // namespace ranklog::test
