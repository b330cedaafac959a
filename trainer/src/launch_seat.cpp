#include "launch_seat.hpp"

#include <random>
#include <set>
#include <vector>

#include "ranklog/schema/error.hpp"
#include "roster.hpp"

namespace ranklog {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kLaunchCountKey[] = "launches";

void require_size(const std::string& found, const SeatRequest& request) {
  if (found == std::to_string(request.size)) return;
  throw Error(ErrorCode::kUsage,
              "this process was told of " + std::to_string(request.size) + " ranks, but the job at " +
                  request.where + " has " + found,
              "give every rank the same WORLD_SIZE, and every job a MASTER_PORT of its own");
}

[[noreturn]] void refuse_double(const SeatRequest& request) {
  throw Error(ErrorCode::kUsage,
              "rank " + std::to_string(request.rank) + " is already taken in the job at " + request.where,
              "give every process a RANK of its own, and every job a MASTER_PORT of its own");
}

[[noreturn]] void refuse_to_wait_on(const SeatRequest& request) {
  throw Error(ErrorCode::kTimeout, "rank 0 did not come to the job's store at " + request.where);
}

std::string random_name() {
  std::random_device random;
  return std::to_string(random()) + "-" + std::to_string(random());
}

// The keys of one launch in a store that several use in turn.
class LaunchKeys : public KeyStore {
 public:
  LaunchKeys(KeyStore& keys, std::int64_t launch) : keys_(keys), prefix_(launch_name(launch) + "/") {}

  void set(const std::string& key, const std::string& value) override { keys_.set(prefix_ + key, value); }
  std::optional<std::string> get(const std::string& key) override { return keys_.get(prefix_ + key); }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return keys_.add(prefix_ + key, amount);
  }
  void remove(const std::string& key) override { keys_.remove(prefix_ + key); }

 private:
  KeyStore& keys_;
  std::string prefix_;
};

std::string of_rank(const char* key, int rank) {
  return std::string(key) + "/" + std::to_string(rank);
}

// Rank 0: answers all, each with its own words.
std::int64_t open_launch(KeyStore& keys, const SeatRequest& request) {
  const std::int64_t launch = keys.add(kLaunchCountKey, 1);
  LaunchKeys mine(keys, launch);
  mine.set("size", std::to_string(request.size));
  std::set<int> awaited;
  for (int rank = 1; rank < request.size; ++rank) awaited.insert(rank);
  const auto deadline = Clock::now() + request.timeout;
  PollPause pause;
  while (!awaited.empty()) {
    std::erase_if(awaited, [&](int rank) {
      const auto name = mine.get(of_rank("name", rank));
      if (name) mine.set(of_rank("answer", rank), *name);
      return name.has_value();
    });
    if (awaited.empty()) break;
    if (Clock::now() >= deadline) {
      const std::string what = name_ranks({awaited.begin(), awaited.end()}) +
                               " did not come to the job's store at " + request.where + " within " +
                               name_duration(request.timeout);
      Roster(mine, request.rank, request.size).note_failure(what);
      throw Error(ErrorCode::kTimeout, what);
    }
    pause.wait();
  }
  return launch;
}

}  // namespace

std::string launch_name(std::int64_t launch) {
  return "launch/" + std::to_string(launch);
}

void take_seat(KeyStore& keys, const SeatRequest& request) {
  if (request.rank == 0) keys.set("size", std::to_string(request.size));
  const auto deadline = Clock::now() + request.timeout;
  PollPause pause;
  std::optional<std::string> size = keys.get("size");
  while (!size && Clock::now() < deadline) {
    pause.wait();
    size = keys.get("size");
  }
  if (!size) refuse_to_wait_on(request);
  require_size(*size, request);
  if (keys.add(of_rank("seat", request.rank), 1) != 1) refuse_double(request);
}

std::int64_t join_launch(KeyStore& keys, const SeatRequest& request) {
  if (request.rank == 0) return open_launch(keys, request);
  const std::string name = random_name();
  const auto deadline = Clock::now() + request.timeout;
  std::int64_t tried = 0;
  bool seated = false;
  PollPause pause;
  while (Clock::now() < deadline) {
    const std::int64_t launch = keys.add(kLaunchCountKey, 0);
    LaunchKeys theirs(keys, launch);
    const auto size = theirs.get("size");
    if (launch != tried && size) {
      require_size(*size, request);
      tried = launch;
      seated = theirs.add(of_rank("seat", request.rank), 1) == 1;
      if (seated) theirs.set(of_rank("name", request.rank), name);
    }
    if (seated && launch == tried && theirs.get(of_rank("answer", request.rank)) == name) return launch;
    pause.wait();
  }
  if (tried != 0 && !seated) refuse_double(request);
  refuse_to_wait_on(request);
}

}  // namespace ranklog
