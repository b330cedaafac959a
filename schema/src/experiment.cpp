#include "ranklog/schema/experiment.hpp"

#include <algorithm>
#include <set>

#include "process.hpp"

namespace ranklog {

bool Attempt::has_rows() const noexcept {
  return std::ranges::any_of(segments, [](const RankSegment& segment) { return segment.info.rows != 0; });
}

std::string_view to_string(RunState state) noexcept {
  switch (state) {
    case RunState::kRunning:
      return "running";
    case RunState::kFinished:
      return "finished";
    case RunState::kFailed:
      return "failed";
    case RunState::kPreempted:
      return "preempted";
    case RunState::kCrashed:
      return "crashed";
  }
  return "crashed";
}

const Identity& Experiment::identity() const {
  return attempts.back().segments.front().info.identity;
}

std::vector<int> Experiment::ranks() const {
  std::set<int> found;
  for (const Attempt& attempt : attempts) {
    for (const RankSegment& segment : attempt.segments) found.insert(segment.info.identity.rank);
  }
  return {found.begin(), found.end()};
}

std::vector<int> Experiment::missing_ranks() const {
  const std::vector<int> found = ranks();
  std::vector<int> missing;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (!std::ranges::binary_search(found, rank)) missing.push_back(rank);
  }
  return missing;
}

int Experiment::world_size() const {
  return identity().world_size;
}

std::optional<std::int64_t> Experiment::superseded_from(int number) const {
  std::optional<std::int64_t> from;
  for (const Attempt& attempt : attempts) {
    if (attempt.number <= number || !attempt.resume_step || !attempt.has_rows()) continue;
    from = std::min(from.value_or(*attempt.resume_step), *attempt.resume_step);
  }
  return from;
}

std::optional<std::int64_t> Experiment::superseded_from(int number, const RankSegment& segment) const {
  const int rank = segment.info.identity.rank;
  std::optional<std::int64_t> from = superseded_from(number);
  for (const Attempt& attempt : attempts) {
    if (attempt.number < number) continue;
    const auto of_rank = std::ranges::equal_range(
        attempt.segments, rank, {}, [](const RankSegment& other) { return other.info.identity.rank; });
    bool is_later = attempt.number > number;
    for (const RankSegment& other : of_rank) {
      const auto& step = other.info.rewind_step;
      if (is_later && step) from = std::min(from.value_or(*step), *step);
      is_later = is_later || &other == &segment;
    }
  }
  return from;
}

std::vector<const RankSegment*> Experiment::segments_of(int rank) const {
  std::vector<const RankSegment*> found;
  for (const Attempt& attempt : attempts) {
    for (const RankSegment& segment : attempt.segments) {
      if (segment.info.identity.rank == rank) found.push_back(&segment);
    }
  }
  return found;
}

RunState state_of(const Experiment& experiment, const RankSegment& segment, std::int64_t now_ns,
                  std::int64_t stale_seconds) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const FileInfo& info = segment.info;
  if (info.end_state) {
    switch (*info.end_state) {
      case EndState::kFinished:
        return RunState::kFinished;
      case EndState::kFailed:
        return RunState::kFailed;
      case EndState::kPreempted:
        return RunState::kPreempted;
    }
  }
  const Identity& identity = info.identity;
  if (experiment.attempts.back().launch_token != identity.launch_token) return RunState::kCrashed;
  if (is_gone_from_this_host(identity.host, identity.pid, identity.pid_start_ticks))
    return RunState::kCrashed;
  const bool is_stale = since(info.heartbeat_ns, now_ns) / kNsPerSecond >= stale_seconds;
  return is_stale ? RunState::kCrashed : RunState::kRunning;
}

}  // namespace ranklog
