#include "console_relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "console_protocol.hpp"
#include "ranklog/schema/time.hpp"
#include "secrets.hpp"

namespace ranklog::writer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::size_t kSendBytes = 64 << 10;
// Lines that change all the time are recorded this often.
constexpr milliseconds kRefreshInterval{1000};
// Lines that the owner has not logged yet. Then it is waited for, as long as it makes progress.
constexpr std::size_t kMaxUnloggedBytes = 8 << 20;
constexpr milliseconds kOwnerPatience{1000};
// A pseudo-terminal hands on what was printed a little later.
constexpr milliseconds kTerminalQuiet{20};
constexpr milliseconds kDrainPatience{1000};

// Whether the target is still there.
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno == EAGAIN) {  // somebody made it non-blocking
      pollfd target{fd, POLLOUT, 0};
      ::poll(&target, 1, -1);
    } else if (errno != EINTR) {
      // A full disk may have space for what comes next; a reader that has gone does not come back. Neither
      // ends the program that prints.
      return errno != EPIPE && errno != EIO && errno != EBADF;
    }
  }
  return true;
}

int open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#else
  static_cast<void>(pid);
  return -1;
#endif
}

std::size_t cost_of(const ConsoleLine& line) {
  return line.text.size() + sizeof(ConsoleLine);
}

}  // namespace

ConsoleRelay::ConsoleRelay(std::string_view layout, pid_t owner, std::vector<std::string> secrets, Bury bury)
    : owner_fd_(open_pidfd(owner)), secrets_(std::move(secrets)), bury_(std::move(bury)) {
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (layout[i] == kNoSource) continue;
    const int fd = kRelaySources + static_cast<int>(i);
    const bool from_stderr = layout[i] == kStderrOnly;
    sources_.push_back({fd, from_stderr ? kRelayStderr : kRelayStdout, from_stderr, ::isatty(fd) != 0});
  }
  ::fcntl(kRelayRows, F_SETFL, O_NONBLOCK);
  ::fcntl(kRelayControl, F_SETFL, O_NONBLOCK);
  last_progress_ = next_refresh_ = steady_clock::now();
}

ConsoleRelay::~ConsoleRelay() {
  if (owner_fd_ >= 0) ::close(owner_fd_);
}

void ConsoleRelay::run() {
  while (!is_done()) wait_and_serve();
}

bool ConsoleRelay::is_done() const noexcept {
  const auto closed = [](const Source& source) { return source.fd < 0; };
  return !recording_ && std::all_of(sources_.begin(), sources_.end(), closed);
}

int ConsoleRelay::timeout_ms() const {
  if (!recording_ || (!lines_.has_changed() && !must_wait_for_owner())) return -1;
  const auto wait = std::chrono::ceil<milliseconds>(next_refresh_ - steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, kRefreshInterval.count()));
}

// A program that prints faster than it can log waits, as for a slow terminal; one whose log makes no progress
// does not wait for it, and its lines are lost.
bool ConsoleRelay::must_wait_for_owner() const {
  return recording_ && unlogged_bytes_ >= kMaxUnloggedBytes &&
         steady_clock::now() < last_progress_ + kOwnerPatience;
}

void ConsoleRelay::wait_and_serve() {
  const bool reads = !must_wait_for_owner();
  const bool sends = recording_ && (!outgoing_.empty() || sent_ < unlogged_.size());
  std::array<pollfd, 5> polled{};
  polled[0] = {recording_ ? kRelayControl : -1, POLLIN, 0};
  polled[1] = {recording_ ? owner_fd_ : -1, POLLIN, 0};
  polled[2] = {recording_ ? kRelayRows : -1, static_cast<short>(sends ? POLLOUT : 0), 0};
  for (std::size_t i = 0; i < sources_.size(); ++i) polled[3 + i] = {reads ? sources_[i].fd : -1, POLLIN, 0};
  if (::poll(polled.data(), 3 + sources_.size(), timeout_ms()) < 0) return;

  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (polled[3 + i].revents != 0) pass_on(sources_[i]);
  }
  if (polled[0].revents != 0) serve_control();
  if (recording_ && (polled[1].revents != 0 || (polled[2].revents & POLLERR) != 0)) owner_has_gone();
  refresh_lines();
  send();
}

// All requests that are there.
void ConsoleRelay::serve_control() {
  while (recording_) {
    RelayControl control;
    const ssize_t got = ::read(kRelayControl, &control, sizeof control);  // written whole, so read whole
    if (got == sizeof control) {
      serve_request(static_cast<std::uint32_t>(control.request), control.value);
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else if (got >= 0 || errno != EINTR) {
      return bury_what_is_left();
    }
  }
}

void ConsoleRelay::serve_request(std::uint32_t request, std::uint64_t value) {
  switch (static_cast<RelayRequest>(request)) {
    case RelayRequest::kLogged:
      last_progress_ = steady_clock::now();
      while (logged_ < value && sent_ > 0) {
        unlogged_bytes_ -= cost_of(unlogged_.front().line);
        unlogged_.pop_front();
        ++logged_;
        --sent_;
      }
      return;
    case RelayRequest::kFlush: {
      drain();
      enqueue(lines_.take_changed());
      Message flushed;
      flushed.is_flush = true;
      flushed.line.number = static_cast<std::int64_t>(value);
      unlogged_bytes_ += cost_of(flushed.line);
      unlogged_.push_back(std::move(flushed));
      return;
    }
    case RelayRequest::kEnd:
      stop_recording();
      return;
  }
}

std::size_t ConsoleRelay::pass_on(Source& source) {
  std::array<char, kReadBytes> block;
  const ssize_t got = ::read(source.fd, block.data(), block.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return 0;
  if (got <= 0) {  // the last writer has gone; a pseudo-terminal says EIO
    ::close(std::exchange(source.fd, -1));
    return 0;
  }
  const std::string_view bytes(block.data(), static_cast<std::size_t>(got));
  if (source.is_terminal) follow_window_size();
  if (source.target >= 0 && !write_all(source.target, bytes)) source.target = -1;
  if (recording_) {
    lines_.feed(bytes, source.from_stderr, unix_time_ns());
    enqueue(lines_.take_finished());
  }
  return bytes.size();
}

// All that was printed until now; a child that goes on printing is not waited for.
void ConsoleRelay::drain() {
  const auto deadline = steady_clock::now() + kDrainPatience;
  for (auto& source : sources_) {
    int left = 0;
    if (source.fd < 0 || (!source.is_terminal && ::ioctl(source.fd, FIONREAD, &left) != 0)) continue;
    while (source.fd >= 0 && (source.is_terminal ? steady_clock::now() < deadline : left > 0)) {
      pollfd polled{source.fd, POLLIN, 0};
      if (source.is_terminal && ::poll(&polled, 1, static_cast<int>(kTerminalQuiet.count())) == 0) break;
      const auto passed = pass_on(source);
      left -= static_cast<int>(passed);
      if (passed == 0 && !source.is_terminal) break;
    }
  }
}

void ConsoleRelay::follow_window_size() {
  for (const auto& source : sources_) {
    winsize outer{}, inner{};
    if (!source.is_terminal || source.fd < 0 || ::ioctl(source.target, TIOCGWINSZ, &outer) != 0) continue;
    if (::ioctl(source.fd, TIOCGWINSZ, &inner) == 0 && std::memcmp(&outer, &inner, sizeof outer) != 0)
      ::ioctl(source.fd, TIOCSWINSZ, &outer);
  }
}

void ConsoleRelay::refresh_lines() {
  const auto now = steady_clock::now();
  if (!recording_ || now < next_refresh_) return;
  enqueue(lines_.take_changed());
  next_refresh_ = now + kRefreshInterval;
}

void ConsoleRelay::enqueue(std::vector<ConsoleLine> lines) {
  for (auto& line : lines) {
    if (unlogged_bytes_ >= kMaxUnloggedBytes && !must_wait_for_owner()) return;
    if (unlogged_.empty()) last_progress_ = steady_clock::now();
    line.text = mask_texts(std::move(line.text), secrets_);
    unlogged_bytes_ += cost_of(line);
    unlogged_.push_back({std::move(line), false});
  }
}

void ConsoleRelay::send() {
  while (recording_) {
    while (outgoing_.size() < kSendBytes && sent_ < unlogged_.size()) {
      const auto& [line, is_flush] = unlogged_[sent_++];
      RelayRow row;
      row.kind = is_flush ? RelayMessage::kFlushed : RelayMessage::kLine;
      row.text_bytes = static_cast<std::uint32_t>(line.text.size());
      row.from_stderr = line.from_stderr ? 1 : 0;
      row.number = line.number;
      row.time_ns = line.time_ns;
      outgoing_.append(reinterpret_cast<const char*>(&row), sizeof row);
      outgoing_ += line.text;
    }
    if (outgoing_.empty()) return;
    const ssize_t put = ::write(kRelayRows, outgoing_.data(), outgoing_.size());
    if (put < 0) return;  // full for now; or the owner has gone, which poll() tells
    outgoing_.erase(0, static_cast<std::size_t>(put));
  }
}

// It may have ended the record before.
void ConsoleRelay::owner_has_gone() {
  serve_control();
  if (recording_) bury_what_is_left();
}

void ConsoleRelay::bury_what_is_left() {
  drain();
  enqueue(lines_.take_changed());
  std::vector<ConsoleLine> lines;
  for (auto& message : unlogged_) {
    if (!message.is_flush) lines.push_back(std::move(message.line));
  }
  stop_recording();
  if (!lines.empty()) bury_(lines);
}

void ConsoleRelay::stop_recording() {
  recording_ = false;
  unlogged_.clear();
  outgoing_.clear();
  ::close(kRelayControl);
  ::close(kRelayRows);
}

}  // namespace ranklog::writer
