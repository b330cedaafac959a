#pragma once
// Who has come, who is missing and who has failed, told through a key store. No LibTorch in here.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "key_store.hpp"
#include "ranklog/trainer/communicator.hpp"

namespace ranklog {

// "rank 3", "ranks 1 and 3", "ranks 1, 2 and 3", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more".
[[nodiscard]] std::string name_ranks(const std::vector<int>& ranks);
// "30 s", "1.5 s", "200 ms"
[[nodiscard]] std::string name_duration(std::chrono::milliseconds duration);

// The view of one rank. Used by one thread; several may exist on one key store.
class Roster {
 public:
  Roster(KeyStore& keys, int rank, int size) : keys_(keys), rank_(rank), size_(size) {}

  // Returns once every rank has called it with this label for the same time in a row. Throws Error
  // (kTimeout) naming those who did not, or passing on a failure that another rank noted.
  // `remedy`: what to look at when ranks do not come.
  void meet(std::string_view label, std::chrono::milliseconds timeout, std::string_view remedy = {});

  // Rank 0 returns at once, the others when it has called. Throws Error (kTimeout) after `limit`, after a
  // failure that was noted, or when rank 0 beat before and has not for `patience`.
  void await_rank_zero(std::string_view label, std::chrono::milliseconds limit,
                       std::chrono::milliseconds patience);
  // Rank 0's sign of life. Called by a thread that is never stuck in its own work.
  void beat();

  // The first note of all ranks stays; later ones are about its consequences.
  void note_failure(const std::string& what);
  [[nodiscard]] std::optional<std::string> failure();
  // Throws failure() as an Error (kTimeout), if there is one.
  void check_failure();

  // Asks every rank for a sign of life (answer_roll_call) and returns those that gave none within `limit`.
  [[nodiscard]] std::vector<int> call_roll(std::chrono::milliseconds limit);
  // Answers an open roll call, if there is one. Called by a thread that is never stuck in a collective.
  void answer_roll_call();

  // Counts this rank as there: whoever waits for all in leave() waits for it too.
  void enter();
  // Counts this rank as gone; `wait_for_all`: returns when every rank that entered is, but for those that did
  // not answer the last roll call, if there was one; or after `limit`.
  void leave(bool wait_for_all, std::chrono::milliseconds limit);

 private:
  [[nodiscard]] std::vector<int> absent_from(const std::string& meeting);
  void forget_previous_meeting(const std::string& meeting);

  KeyStore& keys_;
  int rank_;
  int size_;
  std::uint64_t meetings_ = 0;
  std::uint64_t awaited_ = 0;
  std::string previous_meeting_;
};

// Waits between two looks at a store: short at first, so that ranks leave together; longer when the wait is
// long anyway, so that thousands of waiting ranks do not swamp the store.
class PollPause {
 public:
  void wait();

 private:
  std::chrono::microseconds next_{100};
};

}  // namespace ranklog
