#pragma once
// What the ranks of a job say to each other, whatever carries it: c10d between processes, threads in tests.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/schema/error.hpp"

namespace ranklog {

// One passage through a barrier, by the local clock (Unix time). Every rank leaves at nearly the same true
// moment, so the `left` times of several ranks tell how their clocks differ.
struct BarrierPassage {
  std::int64_t entered_ns = 0;
  std::int64_t left_ns = 0;
};

// Collective calls: every rank makes the same ones in the same order, from one thread. Each ends within the
// communicator's timeout: with its result, or with an Error (kTimeout) whose message names the ranks that
// did not come, are gone, or failed, and why. After an Error only report_failure() and leave() are of use.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;

  // Returns once every rank has come. `label` is for people ("checkpoint step 400"); ranks that wait at
  // different labels do not meet.
  BarrierPassage barrier(std::string_view label) { return barrier(label, timeout()); }
  virtual BarrierPassage barrier(std::string_view label, std::chrono::milliseconds timeout) = 0;

  // For work that rank 0 does alone and that may rightly take longer than the timeout: rank 0 calls it when
  // it is done, the others return then. They wait at most `limit`, and not for a rank 0 that failed, is gone,
  // or has shown no sign of life within the timeout.
  virtual void await_rank_zero(std::string_view label, std::chrono::milliseconds limit) = 0;

  // Rank 0's text, on every rank.
  [[nodiscard]] virtual std::string broadcast(const std::string& of_rank_zero) = 0;
  // values[i] becomes the sum of values[i] over the ranks; the same bits on every rank.
  virtual void all_reduce_sum(std::span<double> values) = 0;
  virtual void all_reduce_sum(std::span<float> values) = 0;
  // What each rank gave, by rank. For small texts.
  [[nodiscard]] virtual std::vector<std::string> all_gather(const std::string& of_this_rank) = 0;

  // Tells every other rank that this one cannot go on, so that they stop now and say why. Of several
  // failures all ranks report the first.
  virtual void report_failure(const std::string& what) noexcept = 0;
  // The last call. Waits until the others made it too, at most `limit`: the rank that serves the others must
  // go last.
  virtual void leave(std::chrono::milliseconds limit) noexcept = 0;

  [[nodiscard]] virtual std::chrono::milliseconds timeout() const noexcept = 0;
};

}  // namespace ranklog
