#pragma once
// What the ranks of a job tell each other before they begin, and what follows from it on every rank alike.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ranklog/trainer/communicator.hpp"
#include "ranklog/writer/launch.hpp"

namespace ranklog {

struct RankStatement {
  KnownPlace place;
  std::string host;           // filled in by exchange_statements()
  std::int64_t restarts = 0;  // of this job, as this rank's launcher counts them
  // What must be equal on all ranks, by the name under which the user knows it: {"--lr", "0.05"}. The same
  // names in the same order on every rank.
  std::vector<std::pair<std::string, std::string>> settings;
};

// A collective call: what every rank states, by rank.
[[nodiscard]] std::vector<RankStatement> exchange_statements(RankStatement mine, Communicator& communicator);

// Throws Error (kUsage) naming the first setting that differs from rank 0's, and the rank.
void require_equal_settings(std::span<const RankStatement> by_rank);

// Completes the places that the launchers left open. Node: as told; else by counting, where every node has as
// many ranks and the host names agree; else by host name. Local ranks and sizes follow. Throws Error (kUsage)
// naming the ranks where what they state cannot all be true, or does not suffice.
[[nodiscard]] std::vector<Place> settle_places(std::span<const RankStatement> by_rank);

}  // namespace ranklog
