#pragma once
// The process that stands between a captured program and its terminal or log file: it passes on what comes
// through the sources, at once and unchanged, and makes lines of it for the program to log.
//
// Why a process: what a dying program has printed last is what matters most, and it stands in the pipe. A
// thread of the program would die with it, a file beside the log would not show on the terminal. So nothing
// is lost when the program is killed: the relay empties the pipe, records what the program did not live to
// log, and goes on passing through what its children print, until the last of them has gone.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "console_lines.hpp"

namespace ranklog::writer {

class ConsoleRelay {
 public:
  // Takes lines of a program that is dead, if there are any; called at most once.
  using Bury = std::function<void(const std::vector<ConsoleLine>& lines)>;

  // `layout`: two letters of console_protocol.hpp. `owner`: the program. The texts in `secrets` are masked in
  // lines, not in what passes through.
  ConsoleRelay(std::string_view layout, pid_t owner, std::vector<std::string> secrets, Bury bury);
  ConsoleRelay(const ConsoleRelay&) = delete;
  ConsoleRelay& operator=(const ConsoleRelay&) = delete;
  ~ConsoleRelay();

  void run();  // until nobody can print any more

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Source {
    int fd = -1;
    int target = -1;  // -1: gone
    bool from_stderr = false;
    bool is_terminal = false;
  };
  struct Message {
    ConsoleLine line;
    bool is_flush = false;  // its number is line.number
  };

  [[nodiscard]] bool is_done() const noexcept;
  void wait_and_serve();
  [[nodiscard]] int timeout_ms() const;
  [[nodiscard]] bool must_wait_for_owner() const;
  void serve_control();
  void serve_request(std::uint32_t request, std::uint64_t value);
  std::size_t pass_on(Source& source);  // bytes; 0: nothing there now, or closed
  void drain();
  void follow_window_size();
  void refresh_lines();
  void enqueue(std::vector<ConsoleLine> lines);
  void send();
  void owner_has_gone();
  void bury_what_is_left();
  void stop_recording();

  std::vector<Source> sources_;
  int owner_fd_ = -1;  // a pidfd, where the kernel has them
  std::vector<std::string> secrets_;
  Bury bury_;
  bool recording_ = true;
  ConsoleLines lines_;
  SteadyTime next_refresh_;

  std::deque<Message> unlogged_;  // sent or not
  std::size_t unlogged_bytes_ = 0;
  std::size_t sent_ = 0;      // of unlogged_
  std::uint64_t logged_ = 0;  // messages, since the start
  SteadyTime last_progress_;  // of the owner
  std::string outgoing_;
};

}  // namespace ranklog::writer
