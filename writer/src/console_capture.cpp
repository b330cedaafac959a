#include "console_capture.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "console_descriptors.hpp"
#include "console_protocol.hpp"
#include "ranklog/schema/error.hpp"
#include "standard_output.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

using std::chrono::steady_clock;

constexpr std::chrono::seconds kDestructorPatience{1};

// Variables that make other programs do something of their own would also reach the relay.
std::vector<char*> relay_environment() {
  std::vector<char*> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "LD_PRELOAD=", 11) != 0) entries.push_back(*entry);
  }
  entries.push_back(nullptr);
  return entries;
}

// Owns what posix_spawn needs.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  // A closed `fd` becomes /dev/null.
  void give(int fd, int as) {
    if (fd >= 0) {
      ::posix_spawn_file_actions_adddup2(&actions_, fd, as);
    } else {
      ::posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", O_RDWR, 0);
    }
  }

  // 0, or an errno.
  int run(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    auto environment = relay_environment();
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, words[0].c_str(), &actions_, &attributes_, arguments.data(), environment.data());
    if (error != 0) return error;
    int status = 0;
    pid_t waited = 0;
    do waited = ::waitpid(pid, &status, 0);
    while (waited < 0 && errno == EINTR);
    // The program's own handler of SIGCHLD may have been faster.
    return waited == pid && status != 0 ? ECHILD : 0;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

void write_blocking(int fd, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::write(fd, data, bytes);
    if (put < 0 && errno == EAGAIN) {
      pollfd target{fd, POLLOUT, 0};
      ::poll(&target, 1, -1);
    } else if (put < 0 && errno != EINTR) {
      return;
    } else if (put > 0) {
      data += put;
      bytes -= static_cast<std::size_t>(put);
    }
  }
}

}  // namespace

// What the thread and its owner share; the thread may outlive the owner if the log hangs.
struct ConsoleCapture::State {
  ConsoleDescriptors console;
  ConsolePipe control, rows;  // with both ends of control: writing to a relay that is gone is no SIGPIPE
  Sink sink;
  std::thread thread;  // the owner's

  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t flush_asked = 0, flush_done = 0;  // guarded by mutex
  bool relay_gone = false;                        // guarded by mutex
  bool ended = false;                             // guarded by mutex
  bool stopped = false;                           // guarded by mutex: the thread

  std::uint64_t received = 0;  // messages; the thread's

  void start_relay(const ConsoleCaptureSettings& settings) const;
  void run() noexcept;
  void receive();
  std::size_t take_messages(std::string_view bytes);
  void request(RelayRequest request, std::uint64_t value) const noexcept;
  void take_over();
  bool wait_for_flush(SteadyTime deadline);
  void end(SteadyTime deadline);

  // The one capture of this process.
  static std::atomic<State*>& current() noexcept {
    static constinit std::atomic<State*> state{nullptr};
    return state;
  }
  void claim_process();
  void release_process() noexcept;
  static void leave_in_child() noexcept;
};

void ConsoleCapture::State::start_relay(const ConsoleCaptureSettings& settings) const {
  SpawnPlan plan;
  plan.give(control.reader.get(), kRelayControl);
  plan.give(console.originals[0].get(), kRelayStdout);
  plan.give(console.originals[1].get(), kRelayStderr);
  for (std::size_t i = 0; i < 2; ++i) {
    plan.give(i < console.sources.size() ? console.sources[i].reader.get() : -1,
              kRelaySources + static_cast<int>(i));
  }
  plan.give(rows.writer.get(), kRelayRows);
  const int error =
      plan.run({settings.relay.string(), std::to_string(::getpid()), console.layout(),
                settings.rank_file.string(), std::to_string(settings.rank), settings.launch_token});
  if (error != 0) {
    throw Error(ErrorCode::kIo, "cannot capture the console: cannot start " + settings.relay.string() + ": " +
                                    errno_text(error));
  }
}

void ConsoleCapture::State::request(RelayRequest request, std::uint64_t value) const noexcept {
  const RelayControl message{request, 0, value};
  // Fails only if the relay has not read for thousands of messages; none but the last matters then.
  static_cast<void>(!::write(control.writer.get(), &message, sizeof message));
}

void ConsoleCapture::State::run() noexcept {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  try {
    receive();
    take_over();
  } catch (...) {  // out of memory
    console.restore();
  }
  const std::lock_guard lock(mutex);
  stopped = relay_gone = true;
  changed.notify_all();
}

void ConsoleCapture::State::receive() {
  constexpr std::size_t kBlock = 64 << 10;
  std::string buffer;
  for (;;) {
    const auto before = buffer.size();
    buffer.resize(before + kBlock);
    const ssize_t got = ::read(rows.reader.get(), buffer.data() + before, kBlock);
    buffer.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    buffer.erase(0, take_messages(buffer));
    request(RelayRequest::kLogged, received);
  }
}

// The bytes of whole messages.
std::size_t ConsoleCapture::State::take_messages(std::string_view bytes) {
  std::size_t taken = 0;
  for (;;) {
    RelayRow row;
    if (bytes.size() < sizeof row) return taken;
    std::memcpy(&row, bytes.data(), sizeof row);
    const std::size_t size = sizeof row + row.text_bytes;
    if (bytes.size() < size) return taken;
    if (row.kind == RelayMessage::kLine) {
      sink({row.number, row.from_stderr != 0, row.time_ns,
            std::string(bytes.substr(sizeof row, row.text_bytes))});
    } else {
      const std::lock_guard lock(mutex);
      flush_done = static_cast<std::uint64_t>(row.number);
      changed.notify_all();
    }
    ++received;
    bytes.remove_prefix(size);
    taken += size;
  }
}

// The relay has ended. If it was killed, what is printed must not wait in a pipe that nobody reads.
void ConsoleCapture::State::take_over() {
  {
    const std::lock_guard lock(mutex);
    relay_gone = true;
    changed.notify_all();
    if (ended) return;
  }
  console.restore();
  std::vector<char> block(64 << 10);
  for (std::size_t open = console.sources.size(); open > 0;) {
    std::array<pollfd, 2> polled{{{-1, POLLIN, 0}, {-1, POLLIN, 0}}};
    for (std::size_t i = 0; i < console.sources.size(); ++i) polled[i].fd = console.sources[i].reader.get();
    constexpr int kLookIntervalMs = 100;
    ::poll(polled.data(), polled.size(), kLookIntervalMs);
    for (std::size_t i = 0; i < console.sources.size(); ++i) {
      if (polled[i].revents == 0) continue;
      auto& source = console.sources[i];
      const ssize_t got = ::read(source.reader.get(), block.data(), block.size());
      if (got > 0) {
        write_blocking(console.originals[source.carries == kStderrOnly ? 1 : 0].get(), block.data(),
                       static_cast<std::size_t>(got));
      } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        source.reader.close();
        --open;
      }
    }
    const std::lock_guard lock(mutex);
    if (ended) return;
  }
}

bool ConsoleCapture::State::wait_for_flush(SteadyTime deadline) {
  std::unique_lock lock(mutex);
  if (relay_gone) return false;
  const auto ticket = ++flush_asked;
  request(RelayRequest::kFlush, ticket);
  changed.wait_until(lock, deadline, [&] { return flush_done >= ticket || relay_gone; });
  return flush_done >= ticket;
}

void ConsoleCapture::State::end(SteadyTime deadline) {
  flush_stdio(deadline);
  console.restore();
  wait_for_flush(deadline);
  std::unique_lock lock(mutex);
  ended = true;
  request(RelayRequest::kEnd, 0);
  const bool has_stopped = changed.wait_until(lock, deadline, [&] { return stopped; });
  lock.unlock();
  if (has_stopped) {
    thread.join();
  } else {
    thread.detach();
  }
}

void ConsoleCapture::State::claim_process() {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(nullptr, nullptr, &State::leave_in_child); });
  State* nobody = nullptr;
  if (!current().compare_exchange_strong(nobody, this)) {
    throw Error(ErrorCode::kBusy, "another log of this process records the console already");
  }
}

void ConsoleCapture::State::release_process() noexcept {
  State* self = this;
  current().compare_exchange_strong(self, nullptr);
}

// A child prints into the pipe as its parent does; the ends that are the parent's would keep it from seeing
// that the parent has gone. It may capture for itself.
void ConsoleCapture::State::leave_in_child() noexcept {
  State* state = current().exchange(nullptr);
  if (state == nullptr) return;
  for (auto* descriptor : {&state->control.reader, &state->control.writer, &state->rows.reader,
                           &state->rows.writer, &state->console.originals[0], &state->console.originals[1]})
    descriptor->close();
  for (auto& source : state->console.sources) {
    source.reader.close();
    source.writer.close();
  }
}

ConsoleCapture::ConsoleCapture(const ConsoleCaptureSettings& settings, Sink sink)
    : state_(std::make_shared<State>()) {
  if (settings.relay.empty()) {
    throw Error(
        ErrorCode::kNotFound, "cannot capture the console: there is no ranklog-console",
        "install it beside the program or set RANKLOG_CONSOLE_RELAY to it, or RANKLOG_CONSOLE to off");
  }
  state_->claim_process();
  try {
    state_->sink = std::move(sink);
    state_->console = prepare_console_descriptors();
    state_->control = make_console_pipe();
    state_->rows = make_console_pipe();
    ::fcntl(state_->control.writer.get(), F_SETFL, O_NONBLOCK);
    state_->start_relay(settings);
    state_->rows.writer.close();
    state_->thread = std::thread([state = state_] { state->run(); });
    flush_stdio(steady_clock::now());
    state_->console.install();
  } catch (...) {
    state_->release_process();
    if (state_->thread.joinable()) state_->end(steady_clock::now() + kDestructorPatience);
    throw;
  }
}

ConsoleCapture::~ConsoleCapture() {
  stop(steady_clock::now() + kDestructorPatience);
}

bool ConsoleCapture::flush(SteadyTime deadline) noexcept {
  try {
    flush_stdio(deadline);
    return state_->wait_for_flush(deadline);
  } catch (...) {
    return false;
  }
}

void ConsoleCapture::stop(SteadyTime deadline) noexcept {
  if (!state_->thread.joinable()) return;
  try {
    state_->end(deadline);
  } catch (...) {
    state_->console.restore();
  }
  state_->release_process();
}

fs::path find_console_relay() {
  if (const char* given = std::getenv("RANKLOG_CONSOLE_RELAY"); given != nullptr && *given != '\0') {
    return fs::absolute(given);
  }
  Dl_info here{};
  std::error_code error;
  fs::path self;
  if (::dladdr(reinterpret_cast<const void*>(&find_console_relay), &here) != 0 && here.dli_fname != nullptr)
    self = fs::canonical(here.dli_fname, error);
  // The program itself is named as it was called.
  if (self.empty() || error) self = fs::read_symlink("/proc/self/exe", error);
  for (const char* folder : {".", "../bin", "../libexec/ranklog"}) {
    fs::path candidate = self.parent_path() / folder / "ranklog-console";
    if (::access(candidate.c_str(), X_OK) == 0) return candidate.lexically_normal();
  }
  return {};
}

}  // namespace ranklog::writer
