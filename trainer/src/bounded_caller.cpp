#include "bounded_caller.hpp"

#include <condition_variable>
#include <mutex>

namespace ranklog {

struct BoundedCaller::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> call;  // the one that waits or runs; empty: none does
  bool running = false;        // `call` is in the thread's hands
  bool given_up = false;
  bool end = false;
};

BoundedCaller::BoundedCaller()
    : state_(std::make_shared<State>()), thread_([state = state_] { run(state); }) {}

BoundedCaller::~BoundedCaller() {
  bool stuck = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->end = true;
    stuck = state_->running;
  }
  state_->changed.notify_all();
  if (stuck) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void BoundedCaller::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->changed.wait(lock, [&] { return state->end || (state->call && !state->given_up); });
    if (state->end) return;
    state->running = true;
    lock.unlock();
    state->call();
    lock.lock();
    state->running = false;
    state->call = nullptr;
    state->changed.notify_all();
  }
}

bool BoundedCaller::call(std::function<void()> what, std::chrono::milliseconds limit) {
  std::unique_lock lock(state_->mutex);
  if (state_->given_up) return false;
  state_->call = std::move(what);
  state_->changed.notify_all();
  const auto over = [this] { return !state_->call || state_->given_up; };
  if (state_->changed.wait_for(lock, limit, over) && !state_->given_up) return true;
  state_->given_up = true;
  return false;
}

void BoundedCaller::give_up() {
  const std::lock_guard lock(state_->mutex);
  state_->given_up = true;
  state_->changed.notify_all();
}

}  // namespace ranklog
