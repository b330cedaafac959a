#pragma once
// Calls that may never return, with a limit for the one who waits.

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace ranklog {

// Runs calls on a thread of its own, one after the other. Once one was given up, none is made any more: the
// thread may be stuck in it, and is left to itself. Used by one thread; give_up() may come from another.
class BoundedCaller {
 public:
  BoundedCaller();
  BoundedCaller(const BoundedCaller&) = delete;
  BoundedCaller& operator=(const BoundedCaller&) = delete;
  ~BoundedCaller();

  // False: the call has not ended within `limit`, or was given up. What it uses must then stay alive without
  // the caller. It must not throw.
  [[nodiscard]] bool call(std::function<void()> what, std::chrono::milliseconds limit);
  void give_up();

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
  std::thread thread_;
};

}  // namespace ranklog
