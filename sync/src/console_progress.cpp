#include "console_progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>

#include "ranklog/sync/plan_view.hpp"

namespace ranklog::sync {
namespace {

std::string ratio_text(std::uint64_t done, std::uint64_t all) {
  const std::uint64_t percent = all == 0 ? 100 : std::min<std::uint64_t>(100, done * 100 / all);
  return " (" + std::to_string(percent) + " %)";
}

}  // namespace

ConsoleProgress::ConsoleProgress(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {
  if (!quiet_) ticker_ = std::jthread([this](const std::stop_token& token) { tick(token); });
}

ConsoleProgress::~ConsoleProgress() {
  if (ticker_.joinable()) {
    ticker_.request_stop();
    ticker_.join();
  }
  if (status_shown_) std::fputs("\r\x1b[K", stderr);
}

void ConsoleProgress::expect_lines(std::uint64_t lines) {
  const std::lock_guard lock(mutex_);
  lines_expected_ += lines;
}

void ConsoleProgress::expect_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_expected_ += bytes;
}

void ConsoleProgress::count_lines(std::uint64_t lines) {
  const std::lock_guard lock(mutex_);
  lines_ += lines;
}

void ConsoleProgress::count_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ += bytes;
}

void ConsoleProgress::run_began(const std::string& url) {
  const std::lock_guard lock(mutex_);
  print_line("run " + url);
}

void ConsoleProgress::notice(const std::string& message) {
  const std::lock_guard lock(mutex_);
  print_line(message);
}

void ConsoleProgress::tick(const std::stop_token& token) {
  const std::chrono::milliseconds period =
      terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10);
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex_);
  while (!token.stop_requested()) {
    (void)stopped.wait_for(lock, token, period, [] { return false; });
    if (!token.stop_requested()) show_status();
  }
}

void ConsoleProgress::print_line(const std::string& text) {
  if (quiet_) return;
  if (status_shown_) std::fputs("\r\x1b[K", stderr);
  status_shown_ = false;
  std::fprintf(stderr, "%s\n", text.c_str());
}

void ConsoleProgress::show_status() {
  if (!terminal_) return print_line(status());
  std::fprintf(stderr, "\r\x1b[K%s", status().c_str());
  std::fflush(stderr);
  status_shown_ = true;
}

std::string ConsoleProgress::status() const {
  using std::chrono::seconds;
  const auto passed = std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now() - began_);
  std::string text = "history " + std::to_string(lines_) + "/" + std::to_string(lines_expected_) + " steps" +
                     ratio_text(lines_, lines_expected_);
  if (bytes_expected_ > 0) {
    text += ", artifacts " + bytes_text(bytes_) + "/" + bytes_text(bytes_expected_) +
            ratio_text(bytes_, bytes_expected_);
  }
  text += ", " + std::to_string(passed.count()) + " s";
  if (lines_ > 0 && lines_ < lines_expected_) {
    const std::uint64_t left =
        static_cast<std::uint64_t>(passed.count()) * (lines_expected_ - lines_) / lines_;
    text += ", about " + std::to_string(left) + " s left for history";
  }
  return text;
}

}  // namespace ranklog::sync
