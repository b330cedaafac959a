#include "roster.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "peer_watch.hpp"

namespace ranklog::test {
namespace {

using namespace std::chrono_literals;

TEST(Names, RanksReadAsASentence) {
  EXPECT_EQ(name_ranks({3}), "rank 3");
  EXPECT_EQ(name_ranks({1, 3}), "ranks 1 and 3");
  EXPECT_EQ(name_ranks({0, 1, 3}), "ranks 0, 1 and 3");
  EXPECT_EQ(name_ranks({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

TEST(Names, DurationsAreShort) {
  EXPECT_EQ(name_duration(200ms), "200 ms");
  EXPECT_EQ(name_duration(30s), "30 s");
  EXPECT_EQ(name_duration(1500ms), "1.5 s");
}

TEST(Roster, TheFirstFailureStays) {
  MemoryKeyStore keys;
  Roster first(keys, 1, 3);
  Roster second(keys, 2, 3);
  first.note_failure("rank 1 failed: no space");
  second.note_failure("rank 2 failed: rank 1 hung up");
  EXPECT_EQ(second.failure(), "rank 1 failed: no space");
}

TEST(Roster, ARollCallFindsThoseThatDoNotAnswer) {
  MemoryKeyStore keys;
  Roster caller(keys, 0, 4);
  Roster alive(keys, 2, 4);
  std::thread answering([&] {
    for (int i = 0; i < 100; ++i) {
      alive.answer_roll_call();
      std::this_thread::sleep_for(5ms);
    }
  });
  EXPECT_EQ(caller.call_roll(300ms), (std::vector<int>{1, 3}));
  answering.join();
}

TEST(Roster, KeysOfPastMeetingsAreRemoved) {
  class CountingStore : public MemoryKeyStore {
   public:
    void set(const std::string& key, const std::string& value) override {
      live.insert(key);
      MemoryKeyStore::set(key, value);
    }
    void remove(const std::string& key) override {
      live.erase(key);
      MemoryKeyStore::remove(key);
    }
    std::set<std::string> live;
  } keys;
  Roster roster(keys, 0, 1);
  for (int i = 0; i < 100; ++i) roster.meet("step", 1s);
  EXPECT_LE(keys.live.size(), 1U);
}

TEST(Roster, WhoServesTheOthersWaitsForThoseThatCameAndForNoneBesides) {
  MemoryKeyStore keys;
  Roster zero(keys, 0, 3);
  Roster one(keys, 1, 3);  // rank 2 never comes
  zero.enter();
  one.enter();
  std::atomic<bool> one_left = false;
  std::thread leaving([&] {
    std::this_thread::sleep_for(100ms);
    one_left = true;
    one.leave(false, 60s);
  });
  const auto start = std::chrono::steady_clock::now();
  zero.leave(true, 60s);
  EXPECT_TRUE(one_left);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 50s);
  leaving.join();
}

TEST(Roster, WhoServesTheOthersWaitsNoLongerThanItsLimit) {
  MemoryKeyStore keys;
  Roster zero(keys, 0, 2);
  zero.enter();
  Roster(keys, 1, 2).enter();
  const auto start = std::chrono::steady_clock::now();
  zero.leave(true, 100ms);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 100ms);
}

std::string complaint_of_waiting(KeyStore& keys, std::chrono::milliseconds limit,
                                 std::chrono::milliseconds patience) {
  try {
    Roster(keys, 1, 2).await_rank_zero("save", limit, patience);
  } catch (const Error& e) {
    return e.what();
  }
  return "it came";
}

TEST(Roster, RankZeroIsAwaitedBeyondTheUsualPatienceWhileItBeats) {
  MemoryKeyStore keys;
  std::string complaint = "never ended";
  std::thread waiting([&] { complaint = complaint_of_waiting(keys, 60s, 2s); });
  Roster zero(keys, 0, 2);
  for (int i = 0; i < 40; ++i) {
    zero.beat();
    std::this_thread::sleep_for(100ms);
  }
  zero.await_rank_zero("save", 60s, 2s);
  waiting.join();
  EXPECT_EQ(complaint, "it came");
}

TEST(Roster, ARankZeroThatFallsSilentFailsOrTakesTooLongIsNotAwaited) {
  MemoryKeyStore silent;
  Roster(silent, 0, 2).beat();
  EXPECT_EQ(complaint_of_waiting(silent, 60s, 100ms),
            "rank 0 was not done with 'save', and gave no sign of life within 100 ms");
  MemoryKeyStore failed;
  Roster(failed, 0, 2).note_failure("rank 0 failed: no space");
  EXPECT_EQ(complaint_of_waiting(failed, 60s, 60s), "rank 0 failed: no space");
  MemoryKeyStore slow;
  EXPECT_EQ(complaint_of_waiting(slow, 100ms, 60s), "rank 0 was not done with 'save' within 100 ms");
}

TEST(PeerWatch, TellsOfAFailureWhenTheRankItselfIsStuck) {
  auto keys = std::make_unique<MemoryKeyStore>();
  Roster other(*keys, 1, 2);
  std::promise<std::string> told;
  auto news = told.get_future();
  const PeerWatch watch(std::move(keys), 0, 2, 10ms, [&](const std::string& why) { told.set_value(why); });
  other.note_failure("rank 1 failed: no space");
  ASSERT_EQ(news.wait_for(30s), std::future_status::ready);
  EXPECT_EQ(news.get(), "rank 1 failed: no space");
}

TEST(PeerWatch, LeavesARankAloneThatEndsByItself) {
  auto keys = std::make_unique<MemoryKeyStore>();
  Roster(*keys, 1, 2).note_failure("rank 1 failed: no space");
  std::atomic<bool> called = false;
  {
    const PeerWatch watch(std::move(keys), 0, 2, 60s, [&](const std::string&) { called = true; });
    std::this_thread::sleep_for(400ms);
  }
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace ranklog::test
