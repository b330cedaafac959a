#pragma once
// Who is who in the job's store, and which launch is meant where the store outlives one.

#include <chrono>
#include <cstdint>
#include <string>

#include "key_store.hpp"

namespace ranklog {

struct SeatRequest {
  int rank = 0;
  int size = 1;
  std::string where;  // of the store: "10.0.0.1:29500"
  std::chrono::milliseconds timeout{0};
};

// In a store that rank 0 serves itself, and that is therefore new. A port can belong to another job, whose
// store must not be disturbed: the world size must be the same, and this rank must be free in it. Throws
// Error (kUsage), or kTimeout where rank 0 does not come.
void take_seat(KeyStore& keys, const SeatRequest& request);

// In a store that may hold what an earlier launch left: torchrun's agent serves it through its restarts, and
// each node's agent counts those by itself, so that the count is no name for the launch. Rank 0 opens a new
// launch and answers each rank that comes; a rank that came to an earlier launch gets no answer there and
// moves on. Returns the number of the launch, equal on all its ranks. Throws Error (kUsage: another size, or
// a rank that exists twice; kTimeout, naming who did not come: in the launch's part of the store rank 0 notes
// that as a failure (Roster), for those that have their answer already).
[[nodiscard]] std::int64_t join_launch(KeyStore& keys, const SeatRequest& request);

// Its part of the store: the keys that begin with this and "/".
[[nodiscard]] std::string launch_name(std::int64_t launch);

}  // namespace ranklog
