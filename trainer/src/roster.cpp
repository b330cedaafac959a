#include "roster.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace ranklog {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kFailureKey[] = "failure";
constexpr char kFailureCountKey[] = "failure-count";
constexpr char kRollCallKey[] = "roll-call";
constexpr char kSilentKey[] = "silent";
constexpr char kEnteredKey[] = "entered";
constexpr char kGoneKey[] = "gone";
constexpr char kPulseKey[] = "pulse";

std::string awaited_key(std::uint64_t number) {
  return "awaited/" + std::to_string(number);
}

std::string alive_key(int rank) {
  return "alive/" + std::to_string(rank);
}

}  // namespace

std::string name_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 8;
  const std::size_t shown = std::min(ranks.size(), kShown);
  const bool more = ranks.size() > kShown;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == shown && !more ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (more) text += " and " + std::to_string(ranks.size() - kShown) + " more";
  return text;
}

std::string name_duration(std::chrono::milliseconds duration) {
  const auto ms = duration.count();
  if (ms < 1000) return std::to_string(ms) + " ms";
  std::string text = std::to_string(ms / 1000);
  if (ms % 1000 >= 100) text += "." + std::to_string(ms % 1000 / 100);
  return text + " s";
}

void PollPause::wait() {
  constexpr std::chrono::microseconds kLongest{20000};
  std::this_thread::sleep_for(next_);
  next_ = std::min(next_ * 3 / 2, kLongest);
}

void Roster::meet(std::string_view label, std::chrono::milliseconds timeout, std::string_view remedy) {
  const std::string meeting = "meeting/" + std::to_string(meetings_++) + "/" + std::string(label);
  const std::string count_key = meeting + "/count";
  const auto deadline = Clock::now() + timeout;
  keys_.set(meeting + "/" + std::to_string(rank_), "here");
  std::int64_t present = keys_.add(count_key, 1);
  PollPause pause;
  while (present < size_) {
    check_failure();
    if (Clock::now() >= deadline) {
      std::string what = name_ranks(absent_from(meeting)) + " did not reach the barrier '" +
                         std::string(label) + "' within " + name_duration(timeout);
      if (!remedy.empty()) what.append("; ").append(remedy);
      note_failure(what);
      throw Error(ErrorCode::kTimeout, what);
    }
    pause.wait();
    present = keys_.add(count_key, 0);
  }
  forget_previous_meeting(meeting);
}

void Roster::await_rank_zero(std::string_view label, std::chrono::milliseconds limit,
                             std::chrono::milliseconds patience) {
  const std::string key = awaited_key(awaited_++);
  if (rank_ == 0) {
    keys_.set(key, "done");
    return;
  }
  const auto start = Clock::now();
  auto last_beat = start;
  std::int64_t pulse = 0;
  PollPause pause;
  while (!keys_.get(key)) {
    check_failure();
    const std::int64_t now = keys_.add(kPulseKey, 0);
    if (now != std::exchange(pulse, now)) last_beat = Clock::now();
    const bool silent = pulse > 0 && Clock::now() - last_beat > patience;
    if (silent || Clock::now() - start > limit) {
      const std::string what = "rank 0 was not done with '" + std::string(label) + "'" +
                               (silent ? ", and gave no sign of life within " + name_duration(patience)
                                       : " within " + name_duration(limit));
      note_failure(what);
      throw Error(ErrorCode::kTimeout, what);
    }
    pause.wait();
  }
}

void Roster::beat() {
  if (rank_ == 0) keys_.add(kPulseKey, 1);
}

std::vector<int> Roster::absent_from(const std::string& meeting) {
  std::vector<int> absent;
  for (int rank = 0; rank < size_; ++rank) {
    if (!keys_.get(meeting + "/" + std::to_string(rank))) absent.push_back(rank);
  }
  return absent;
}

// Whoever has come to this meeting has left the one before, so its keys are no longer looked at.
void Roster::forget_previous_meeting(const std::string& meeting) {
  if (!previous_meeting_.empty()) {
    keys_.remove(previous_meeting_ + "/" + std::to_string(rank_));
    if (rank_ == 0) keys_.remove(previous_meeting_ + "/count");
  }
  previous_meeting_ = meeting;
}

void Roster::note_failure(const std::string& what) {
  if (keys_.add(kFailureCountKey, 1) == 1) keys_.set(kFailureKey, what);
}

std::optional<std::string> Roster::failure() {
  return keys_.get(kFailureKey);
}

void Roster::check_failure() {
  if (auto what = failure()) throw Error(ErrorCode::kTimeout, *what);
}

std::vector<int> Roster::call_roll(std::chrono::milliseconds limit) {
  keys_.set(alive_key(rank_), "yes");
  keys_.set(kRollCallKey, "open");
  const auto deadline = Clock::now() + limit;
  std::vector<int> silent;
  for (int rank = 0; rank < size_; ++rank) silent.push_back(rank);
  PollPause pause;
  while (true) {
    std::erase_if(silent, [this](int rank) { return keys_.get(alive_key(rank)).has_value(); });
    if (silent.empty() || Clock::now() >= deadline || failure()) break;
    pause.wait();
  }
  keys_.set(kSilentKey, std::to_string(silent.size()));
  return silent;
}

void Roster::answer_roll_call() {
  if (keys_.get(kRollCallKey)) keys_.set(alive_key(rank_), "yes");
}

void Roster::enter() {
  keys_.add(kEnteredKey, 1);
}

void Roster::leave(bool wait_for_all, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  std::int64_t gone = keys_.add(kGoneKey, 1);
  const std::int64_t silent = std::stoll(keys_.get(kSilentKey).value_or("0"));
  PollPause pause;
  while (wait_for_all && gone + silent < keys_.add(kEnteredKey, 0) && Clock::now() < deadline) {
    pause.wait();
    gone = keys_.add(kGoneKey, 0);
  }
}

}  // namespace ranklog
