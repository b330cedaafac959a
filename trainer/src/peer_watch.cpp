#include "peer_watch.hpp"

#include "roster.hpp"

namespace ranklog {

PeerWatch::PeerWatch(std::unique_ptr<KeyStore> keys, int rank, int size, std::chrono::milliseconds patience,
                     std::function<void(const std::string&)> when_stuck)
    : keys_(std::move(keys)),
      rank_(rank),
      size_(size),
      patience_(patience),
      when_stuck_(std::move(when_stuck)),
      thread_([this] { run(); }) {}

PeerWatch::~PeerWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  keys_->give_up();  // the store may be silent
  thread_.join();
}

void PeerWatch::run() {
  const std::string news = wait_for_bad_news();
  if (!news.empty() && !stopped_within(patience_) && when_stuck_) when_stuck_(news);
}

std::string PeerWatch::wait_for_bad_news() {
  constexpr std::chrono::milliseconds kInterval{250};
  Roster roster(*keys_, rank_, size_);
  try {
    while (!stopped_within(kInterval)) {
      roster.beat();
      roster.answer_roll_call();
      if (auto failure = roster.failure()) return *failure;
    }
  } catch (const std::exception& e) {  // the store is gone, and says whose it was
    return e.what();
  }
  return {};
}

bool PeerWatch::stopped_within(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return wake_.wait_for(lock, time, [this] { return stop_; });
}

}  // namespace ranklog
