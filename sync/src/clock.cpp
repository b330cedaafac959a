#include "ranklog/sync/clock.hpp"

#include <mutex>
#include <random>
#include <thread>

#include "ranklog/schema/time.hpp"

namespace ranklog::sync {
namespace {

class SystemClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() override { return std::chrono::steady_clock::now(); }
  std::int64_t unix_ns() override { return unix_time_ns(); }
  void sleep(std::chrono::milliseconds duration) override { std::this_thread::sleep_for(duration); }
  double random() override {
    const std::lock_guard lock(mutex_);
    return std::uniform_real_distribution<double>(0, 1)(generator_);
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 generator_{std::random_device{}()};
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace ranklog::sync
