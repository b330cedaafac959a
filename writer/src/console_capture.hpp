#pragma once
// Records what this process and its children print, without changing what is printed.
//
// Descriptors 1 and 2 become a pipe to a relay process (console_relay.hpp), or a pseudo-terminal where they
// were a terminal, so that isatty() stays what it was. The relay passes every byte on to where it went
// before, at once and unchanged, and sends lines back, which a thread of this process logs.
//
// Order: where stdout and stderr led to one place, they share one pipe, so what passes through is in the
// exact order in which it was printed, and all of it is recorded as stdout. Where they led to two places,
// each has a pipe, and lines of the one and the other are recorded in the order in which they arrive.
//
// What survives: when this process dies, however it dies, all that it printed passes through and is recorded.
// When the whole machine or job is killed at once, the relay too: what it has not read yet, some
// microseconds' worth, is lost on the terminal, and what this process has not logged yet in the record. When
// the relay alone is killed, this process takes its place, and nothing more is recorded.
//
// Children (fork, exec) print into the same pipe, also after this process has gone: they neither block nor
// get SIGPIPE. Their output is recorded as long as this process records.
//
// Cost: one process that sleeps, 6 or 7 descriptors; printing is a write to a pipe. Where the terminal is
// slow, it makes the program wait as before; a program that prints faster than its lines can be logged waits
// for that at most a second, then lines are left out of the record (their numbers are missing).

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "console_lines.hpp"

namespace ranklog::writer {

struct ConsoleCaptureSettings {
  std::filesystem::path relay;      // ranklog-console
  std::filesystem::path rank_file;  // absolute
  int rank = 0;
  std::string launch_token;
};

class ConsoleCapture {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  // Takes one line, new or changed. Called by one thread; must not throw; may wait for a slow disk.
  using Sink = std::function<void(const ConsoleLine& line)>;

  // From here on. Throws Error: kBusy (this process captures already), kNotFound (no relay program), kIo.
  ConsoleCapture(const ConsoleCaptureSettings& settings, Sink sink);
  ~ConsoleCapture();  // stop(), for a second at most
  ConsoleCapture(const ConsoleCapture&) = delete;
  ConsoleCapture& operator=(const ConsoleCapture&) = delete;

  // Until all that was printed before has been given to the sink. False if that takes longer.
  bool flush(SteadyTime deadline) noexcept;
  // Puts the descriptors back, unless the program has changed them itself, and waits for the rest of the
  // lines until the deadline. What children print from now on passes through. Idempotent.
  void stop(SteadyTime deadline) noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// RANKLOG_CONSOLE_RELAY; else "ranklog-console" beside the program or library that this code is in, or in
// ../bin or ../libexec/ranklog from there. Empty if it is nowhere.
[[nodiscard]] std::filesystem::path find_console_relay();

}  // namespace ranklog::writer
