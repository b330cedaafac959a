#pragma once
// A thread for what takes as long as a file is large: digests, and recording what they belong to. Tasks run
// one after the other, in order.
//
// Threads: any, but not from within a task.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "steady_time.hpp"

namespace ranklog::writer {

class CaptureWorker : public std::enable_shared_from_this<CaptureWorker> {
 public:
  // May throw; what it says is told by trouble(). The first task starts the thread. False after stop(): it
  // will not be done. Throws std::system_error if there can be no thread.
  using Task = std::function<void()>;
  [[nodiscard]] bool add(Task task);
  // Until everything that was added has been done. False if it took longer.
  [[nodiscard]] bool drain(SteadyTime deadline);
  // Whether something is still to be done.
  [[nodiscard]] bool is_busy() const;
  // The thread ends when all is done.
  void stop();
  // What went wrong so far; empty: nothing.
  [[nodiscard]] std::string trouble() const;

 private:
  void run();

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // the first is being done
  bool running_ = false;
  bool stop_ = false;
  std::string trouble_;
};

}  // namespace ranklog::writer
