#include "ranklog/trainer/in_process_communicator.hpp"

#include <cstring>

#include "key_store.hpp"
#include "ranklog/schema/time.hpp"
#include "roster.hpp"

namespace ranklog {
namespace {

// Everything goes through the shared key store: slow, and the same to the user as the real thing.
class InProcessCommunicator : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<KeyStore> keys, int rank, int size, std::chrono::milliseconds timeout)
      : keys_(std::move(keys)), roster_(*keys_, rank, size), rank_(rank), size_(size), timeout_(timeout) {}

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  std::chrono::milliseconds timeout() const noexcept override { return timeout_; }

  BarrierPassage barrier(std::string_view label, std::chrono::milliseconds timeout) override {
    BarrierPassage passage;
    passage.entered_ns = unix_time_ns();
    roster_.meet(label, timeout);
    passage.left_ns = unix_time_ns();
    return passage;
  }

  void await_rank_zero(std::string_view label, std::chrono::milliseconds limit) override {
    roster_.await_rank_zero(label, limit, timeout_);
  }

  std::string broadcast(const std::string& of_rank_zero) override { return exchange(of_rank_zero).front(); }

  void all_reduce_sum(std::span<double> values) override { sum(values); }
  void all_reduce_sum(std::span<float> values) override { sum(values); }

  std::vector<std::string> all_gather(const std::string& of_this_rank) override {
    return exchange(of_this_rank);
  }

  void report_failure(const std::string& what) noexcept override {
    try {
      roster_.note_failure("rank " + std::to_string(rank_) + " failed: " + what);
    } catch (...) {  // out of memory: the others will find out by waiting
    }
  }

  // Nobody serves anybody here: the store lives as long as the last communicator.
  void leave(std::chrono::milliseconds) noexcept override {}

 private:
  std::vector<std::string> exchange(const std::string& mine) {
    const std::string prefix = "exchange/" + std::to_string(exchanges_++) + "/";
    keys_->set(prefix + std::to_string(rank_), mine);
    roster_.meet("exchange", timeout_);
    std::vector<std::string> all;
    for (int rank = 0; rank < size_; ++rank) all.push_back(*keys_->get(prefix + std::to_string(rank)));
    roster_.meet("end of exchange", timeout_);
    keys_->remove(prefix + std::to_string(rank_));
    return all;
  }

  template <typename T>
  void sum(std::span<T> values) {
    const std::string mine(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    std::vector<T> part(values.size());
    bool first = true;
    for (const std::string& bytes : exchange(mine)) {
      if (bytes.size() != values.size_bytes())
        throw Error(ErrorCode::kUsage, "ranks reduce different numbers of values");
      std::memcpy(part.data(), bytes.data(), bytes.size());
      for (std::size_t i = 0; i < part.size(); ++i) values[i] = first ? part[i] : values[i] + part[i];
      first = false;
    }
  }

  std::shared_ptr<KeyStore> keys_;
  Roster roster_;
  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  std::uint64_t exchanges_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_in_process_communicators(int size,
                                                                         std::chrono::milliseconds timeout) {
  const auto keys = std::make_shared<MemoryKeyStore>();
  std::vector<std::unique_ptr<Communicator>> all;
  for (int rank = 0; rank < size; ++rank) {
    all.push_back(std::make_unique<InProcessCommunicator>(keys, rank, size, timeout));
  }
  return all;
}

}  // namespace ranklog
