#pragma once
// A thread that listens for bad news while the rank's own thread may be stuck in a collective.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <condition_variable>

#include "key_store.hpp"

namespace ranklog {

// Answers roll calls for this rank. Once a failure is noted, or the store is gone, the rank's own thread has
// `patience` to notice too and destroy the watch; then `when_stuck` is called, once, on the watch's thread.
class PeerWatch {
 public:
  // `keys` is this watch's own way to the store: the rank's may be busy.
  PeerWatch(std::unique_ptr<KeyStore> keys, int rank, int size, std::chrono::milliseconds patience,
            std::function<void(const std::string& why)> when_stuck);
  ~PeerWatch();  // waits for the thread

 private:
  void run();
  [[nodiscard]] std::string wait_for_bad_news();  // empty: told to stop
  [[nodiscard]] bool stopped_within(std::chrono::milliseconds time);

  std::unique_ptr<KeyStore> keys_;
  int rank_;
  int size_;
  std::chrono::milliseconds patience_;
  std::function<void(const std::string&)> when_stuck_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;  // guarded by mutex_

  std::thread thread_;
};

}  // namespace ranklog
