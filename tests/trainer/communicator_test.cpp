// The contract of Communicator, for every implementation.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <map>
#include <mutex>
#include <numeric>

#include "rank_threads.hpp"

namespace ranklog::test {
namespace {

using Runner = Endings (*)(int, std::chrono::milliseconds, const std::function<void(Communicator&)>&);

class CommunicatorContract : public testing::TestWithParam<Runner> {
 protected:
  static Endings run(int size, const std::function<void(Communicator&)>& work) {
    return GetParam()(size, 60s, work);
  }
};

TEST_P(CommunicatorContract, EveryRankKnowsItsPlace) {
  std::mutex mutex;
  std::vector<int> ranks;
  expect_all_well(run(3, [&](Communicator& communicator) {
    EXPECT_EQ(communicator.size(), 3);
    const std::lock_guard lock(mutex);
    ranks.push_back(communicator.rank());
  }));
  std::sort(ranks.begin(), ranks.end());
  EXPECT_EQ(ranks, (std::vector<int>{0, 1, 2}));
}

TEST_P(CommunicatorContract, NobodyLeavesABarrierBeforeAllHaveCome) {
  std::atomic<int> arrived = 0;
  expect_all_well(run(4, [&](Communicator& communicator) {
    for (int round = 1; round <= 5; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(communicator.rank() * 5));
      ++arrived;
      communicator.barrier("round " + std::to_string(round));
      EXPECT_GE(arrived.load(), 4 * round);
    }
  }));
}

TEST_P(CommunicatorContract, ABarrierIsLeftAfterTheLastRankCame) {
  std::mutex mutex;
  std::vector<BarrierPassage> passages;
  expect_all_well(run(3, [&](Communicator& communicator) {
    if (communicator.rank() == 2) std::this_thread::sleep_for(50ms);
    const BarrierPassage passage = communicator.barrier("once");
    const std::lock_guard lock(mutex);
    passages.push_back(passage);
  }));
  std::int64_t last_entered = 0;
  for (const BarrierPassage& passage : passages) last_entered = std::max(last_entered, passage.entered_ns);
  for (const BarrierPassage& passage : passages) EXPECT_GE(passage.left_ns, last_entered);
}

TEST_P(CommunicatorContract, TheBarrierNamesTheRankThatDoesNotCome) {
  const Endings endings = run(4, [&](Communicator& communicator) {
    if (communicator.rank() != 3) communicator.barrier("checkpoint step 400", 300ms);
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(endings[rank], "rank 3 did not reach the barrier 'checkpoint step 400' within 300 ms");
  }
  EXPECT_EQ(endings[3], std::nullopt);
}

TEST_P(CommunicatorContract, RanksAtDifferentBarriersDoNotMeet) {
  const Endings endings = run(2, [&](Communicator& communicator) {
    communicator.barrier(communicator.rank() == 0 ? "save" : "load", 300ms);
  });
  EXPECT_TRUE(endings[0].has_value());
  EXPECT_TRUE(endings[1].has_value());
}

TEST_P(CommunicatorContract, EveryRankGetsRankZerosText) {
  const std::string text = std::string("line\n\0zero \xff", 12) + std::string(100'000, 'x');
  expect_all_well(run(3, [&](Communicator& communicator) {
    EXPECT_EQ(communicator.broadcast(communicator.rank() == 0 ? text : "not this"), text);
    EXPECT_EQ(communicator.broadcast(communicator.rank() == 0 ? "" : "nor this"), "");
    EXPECT_EQ(communicator.broadcast("again " + std::to_string(communicator.rank())), "again 0");
  }));
}

TEST_P(CommunicatorContract, SumsAreTheSameBitsOnEveryRank) {
  std::mutex mutex;
  std::map<int, std::vector<double>> sums;
  expect_all_well(run(4, [&](Communicator& communicator) {
    std::vector<double> values(1001);
    std::iota(values.begin(), values.end(), 0.1 * (1 + communicator.rank()));
    communicator.all_reduce_sum(std::span<double>(values));
    const std::lock_guard lock(mutex);
    sums[communicator.rank()] = values;
  }));
  for (std::size_t i = 0; i < sums[0].size(); ++i)
    EXPECT_NEAR(sums[0][i], 1.0 + 4.0 * static_cast<double>(i), 1e-9);
  for (int rank = 1; rank < 4; ++rank) EXPECT_EQ(sums[rank], sums[0]);
}

TEST_P(CommunicatorContract, FloatsAreSummedToo) {
  expect_all_well(run(2, [&](Communicator& communicator) {
    std::array<float, 2> values{1.5F, static_cast<float>(communicator.rank())};
    communicator.all_reduce_sum(std::span<float>(values));
    EXPECT_EQ(values[0], 3.0F);
    EXPECT_EQ(values[1], 1.0F);
  }));
}

TEST_P(CommunicatorContract, GatheredTextsComeByRankWhateverTheirLength) {
  expect_all_well(run(3, [&](Communicator& communicator) {
    const auto length = static_cast<std::size_t>(communicator.rank()) * 1000;
    const std::vector<std::string> all = communicator.all_gather(std::string(length, 'a'));
    ASSERT_EQ(all.size(), 3U);
    for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(all[rank], std::string(rank * 1000, 'a'));
    EXPECT_EQ(communicator.all_gather(""), (std::vector<std::string>(3)));
  }));
}

TEST_P(CommunicatorContract, AReportedFailureReachesThoseThatWait) {
  const auto start = std::chrono::steady_clock::now();
  const Endings endings = run(3, [&](Communicator& communicator) {
    if (communicator.rank() == 1) {
      communicator.report_failure("the disk is full");
    } else {
      communicator.barrier("next step");
    }
  });
  EXPECT_EQ(endings[0], "rank 1 failed: the disk is full");
  EXPECT_EQ(endings[2], "rank 1 failed: the disk is full");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 50s) << "they should not have waited for the timeout";
}

TEST_P(CommunicatorContract, OneRankAloneNeedsNobody) {
  expect_all_well(run(1, [&](Communicator& communicator) {
    communicator.barrier("alone");
    EXPECT_EQ(communicator.broadcast("me"), "me");
    EXPECT_EQ(communicator.all_gather("me"), std::vector<std::string>{"me"});
    std::array<double, 1> value{2.5};
    communicator.all_reduce_sum(std::span<double>(value));
    EXPECT_EQ(value[0], 2.5);
  }));
}

INSTANTIATE_TEST_SUITE_P(Every, CommunicatorContract, testing::Values(&run_in_process_ranks, &run_c10d_ranks),
                         [](const auto& variant) { return variant.index == 0 ? "InProcess" : "C10d"; });

// Rank 0 serves the store in which the others read why: it must not take that away first.
TEST(C10dCommunicator, EveryRankThereNamesTheOneThatNeverComes) {
  Rendezvous meeting;
  meeting.size = 4;
  meeting.master_addr = "127.0.0.1";
  meeting.master_port = pick_free_port();
  meeting.timeout = 3s;
  const std::vector<int> present{0, 1, 3};
  Endings endings(present.size());
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < present.size(); ++i) {
    meeting.rank = present[i];
    threads.push_back(start_rank([meeting] { (void)connect(meeting); }, endings[i]));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, meeting.timeout + 10s);
  for (std::size_t i = 0; i < present.size(); ++i) {
    EXPECT_EQ(endings[i],
              "rank 2 did not reach the barrier 'start' within 3 s; check that every rank is started, "
              "and reaches MASTER_ADDR:MASTER_PORT 127.0.0.1:" +
                  std::to_string(meeting.master_port))
        << "rank " << present[i];
  }
}

TEST(C10dCommunicator, RankZeroThatNeverComesIsNamed) {
  Rendezvous meeting;
  meeting.rank = 1;
  meeting.size = 2;
  meeting.master_addr = "127.0.0.1";
  meeting.master_port = pick_free_port();
  meeting.timeout = 500ms;
  try {
    (void)connect(meeting);
    FAIL() << "nobody was there";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kTimeout);
    EXPECT_NE(std::string(e.what()).find("rank 0 did not come"), std::string::npos) << e.what();
  }
}

TEST(C10dCommunicator, TwoProcessesWithOneRankAreRefused) {
  Rendezvous meeting;
  meeting.size = 2;
  meeting.master_addr = "127.0.0.1";
  meeting.master_port = pick_free_port();
  meeting.timeout = 20s;
  Endings endings(3);
  const std::vector<int> ranks{0, 1, 1};
  std::latch all_tried(3);  // the job must still be there when the second rank 1 comes
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 3; ++i) {
    meeting.rank = ranks[i];
    const auto try_to_join = [meeting, &all_tried] {
      std::unique_ptr<Communicator> communicator;
      try {
        communicator = connect(meeting);
      } catch (...) {
        all_tried.count_down();
        throw;
      }
      all_tried.arrive_and_wait();
      communicator->leave(2s);
    };
    threads.push_back(start_rank(try_to_join, endings[i]));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(endings[0], std::nullopt);
  EXPECT_NE(endings[1].has_value(), endings[2].has_value()) << "exactly one of the two must be refused";
  const std::string refusal = endings[1].value_or(endings[2].value_or(""));
  EXPECT_NE(refusal.find("rank 1 is already taken"), std::string::npos) << refusal;
}

TEST(C10dCommunicator, AnotherWorldSizeIsRefused) {
  Rendezvous meeting;
  meeting.size = 2;
  meeting.master_addr = "127.0.0.1";
  meeting.master_port = pick_free_port();
  meeting.timeout = 2s;
  Rendezvous other = meeting;
  other.rank = 5;
  other.size = 8;
  Endings endings(2);
  std::thread first = start_rank([meeting] { (void)connect(meeting); }, endings[0]);
  std::thread second = start_rank([other] { (void)connect(other); }, endings[1]);
  first.join();
  second.join();
  EXPECT_EQ(endings[0],
            "rank 1 did not reach the barrier 'start' within 2 s; check that every rank is started, "
            "and reaches MASTER_ADDR:MASTER_PORT 127.0.0.1:" +
                std::to_string(meeting.master_port));
  EXPECT_NE(endings[1].value_or("").find("has 2"), std::string::npos) << endings[1].value_or("(joined)");
}

}  // namespace
}  // namespace ranklog::test
