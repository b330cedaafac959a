#pragma once
// Progress on standard error: one live line on a terminal, else a plain line every ten seconds.

#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "ranklog/sync/progress.hpp"

namespace ranklog::sync {

class ConsoleProgress final : public Progress {
 public:
  explicit ConsoleProgress(bool quiet);
  ~ConsoleProgress() override;  // leaves a clean line
  ConsoleProgress(const ConsoleProgress&) = delete;
  ConsoleProgress& operator=(const ConsoleProgress&) = delete;

  void expect_lines(std::uint64_t lines) override;
  void expect_bytes(std::uint64_t bytes) override;
  void count_lines(std::uint64_t lines) override;
  void count_bytes(std::uint64_t bytes) override;
  void run_began(const std::string& url) override;
  void notice(const std::string& message) override;

 private:
  void tick(const std::stop_token& token);
  void print_line(const std::string& text);  // mutex_ held
  void show_status();                        // mutex_ held
  [[nodiscard]] std::string status() const;  // mutex_ held

  const bool quiet_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::uint64_t lines_expected_ = 0, bytes_expected_ = 0, lines_ = 0, bytes_ = 0;  // guarded by mutex_
  bool status_shown_ = false;                                                      // guarded by mutex_
  std::jthread ticker_;  // last: it uses all of the above
};

}  // namespace ranklog::sync
