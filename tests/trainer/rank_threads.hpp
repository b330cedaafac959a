#pragma once
// Ranks as threads of the test, over either communicator.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ranklog/trainer/c10d_communicator.hpp"
#include "ranklog/trainer/in_process_communicator.hpp"

namespace ranklog::test {

using namespace std::chrono_literals;

// What became of each rank's thread: empty, or the message of the Error that it threw.
using Endings = std::vector<std::optional<std::string>>;

inline std::thread start_rank(std::function<void()> work, std::optional<std::string>& ending) {
  return std::thread([work = std::move(work), &ending] {
    try {
      work();
    } catch (const std::exception& e) {
      ending = e.what();
    }
  });
}

// Runs work(communicator) once a rank over TCPStore and Gloo on loopback.
inline Endings run_c10d_ranks(int size, std::chrono::milliseconds timeout,
                              const std::function<void(Communicator&)>& work) {
  Rendezvous meeting;
  meeting.size = size;
  meeting.master_addr = "127.0.0.1";
  meeting.master_port = pick_free_port();
  meeting.timeout = timeout;
  Endings endings(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    meeting.rank = rank;
    const auto one = [meeting, &work] {
      const auto communicator = connect(meeting);
      try {
        work(*communicator);
      } catch (...) {
        communicator->leave(5s);
        throw;
      }
      communicator->leave(5s);
    };
    threads.push_back(start_rank(one, endings[static_cast<std::size_t>(rank)]));
  }
  for (std::thread& thread : threads) thread.join();
  return endings;
}

inline Endings run_in_process_ranks(int size, std::chrono::milliseconds timeout,
                                    const std::function<void(Communicator&)>& work) {
  const auto communicators = make_in_process_communicators(size, timeout);
  Endings endings(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.push_back(start_rank([&, rank] { work(*communicators[rank]); }, endings[rank]));
  }
  for (std::thread& thread : threads) thread.join();
  return endings;
}

inline void expect_all_well(const Endings& endings) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) {
    EXPECT_EQ(endings[rank], std::nullopt) << "rank " << rank;
  }
}

}  // namespace ranklog::test
