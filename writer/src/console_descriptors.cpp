#include "console_descriptors.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "console_protocol.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog::writer {
namespace {

constexpr int kStandard[2] = {STDOUT_FILENO, STDERR_FILENO};
// Bursts of this size do not wait for the relay.
constexpr int kPipeBytes = 1 << 20;

[[noreturn]] void throw_errno(const char* what) {
  throw Error(ErrorCode::kIo, std::string("cannot capture the console: ") + what + ": " + errno_text(errno));
}

// A copy that no exec inherits, above the numbers that a relay is given.
Descriptor copy_of(int fd) {
  return Descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 2 * kRelayFirstUnused));
}

bool lead_to_one_place(int a, int b) {
  struct stat first{}, second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino && first.st_rdev == second.st_rdev;
}

// That hands bytes on as they are; the real one adds its carriage returns.
bool make_raw_like(int slave, int original) {
  termios settings{};
  winsize size{};
  if (::ioctl(original, TIOCGWINSZ, &size) == 0) ::ioctl(slave, TIOCSWINSZ, &size);
  if (::tcgetattr(slave, &settings) != 0) return false;
  ::cfmakeraw(&settings);
  return ::tcsetattr(slave, TCSANOW, &settings) == 0;
}

// Empty where there are no pseudo-terminals.
ConsolePipe make_pseudo_terminal(int original) {
  std::array<char, 128> name{};
  const Descriptor master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master.is_open() || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0 ||
      ::ptsname_r(master.get(), name.data(), name.size()) != 0)
    return {};
  const Descriptor slave(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave.is_open() || !make_raw_like(slave.get(), original)) return {};
  return {copy_of(master.get()), copy_of(slave.get())};
}

ConsoleSource make_source(char carries, int original) {
  ConsoleSource source;
  source.carries = carries;
  ConsolePipe pipe;
  if (::isatty(original) != 0) pipe = make_pseudo_terminal(original);
  if (!pipe.writer.is_open()) pipe = make_console_pipe();
  ::fcntl(pipe.writer.get(), F_SETPIPE_SZ, kPipeBytes);
  struct stat identity{};
  // The relay must be able to look whether there is more.
  if (::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK) != 0 || ::fstat(pipe.writer.get(), &identity) != 0)
    throw_errno("fcntl");
  source.device = identity.st_dev;
  source.inode = identity.st_ino;
  source.reader = std::move(pipe.reader);
  source.writer = std::move(pipe.writer);
  return source;
}

bool is_writer(int fd, const ConsoleSource& source) {
  struct stat identity{};
  return ::fstat(fd, &identity) == 0 && identity.st_dev == source.device && identity.st_ino == source.inode;
}

bool carries(const ConsoleSource& source, int fd) {
  return source.carries == kBoth || source.carries == (fd == STDOUT_FILENO ? kStdoutOnly : kStderrOnly);
}

}  // namespace

ConsolePipe make_console_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) throw_errno("pipe2");
  const Descriptor reader(fds[0]), writer(fds[1]);
  ConsolePipe pipe{copy_of(reader.get()), copy_of(writer.get())};
  if (!pipe.reader.is_open() || !pipe.writer.is_open()) throw_errno("fcntl");
  return pipe;
}

std::string ConsoleDescriptors::layout() const {
  std::string letters;
  for (const auto& source : sources) letters += source.carries;
  letters.resize(2, kNoSource);
  return letters;
}

ConsoleDescriptors prepare_console_descriptors() {
  ConsoleDescriptors all;
  for (int i = 0; i < 2; ++i) all.originals[i] = copy_of(kStandard[i]);
  const auto [out, err] = std::pair(all.originals[0].get(), all.originals[1].get());
  if (out >= 0 && err >= 0 && lead_to_one_place(out, err)) {
    all.sources.push_back(make_source(kBoth, out));
    return all;
  }
  if (out >= 0) all.sources.push_back(make_source(kStdoutOnly, out));
  if (err >= 0) all.sources.push_back(make_source(kStderrOnly, err));
  if (all.sources.empty())
    throw Error(ErrorCode::kIo, "cannot capture the console: stdout and stderr are closed");
  return all;
}

void ConsoleDescriptors::install() {
  for (const int fd : kStandard) {
    for (const auto& source : sources) {
      if (carries(source, fd) && ::dup2(source.writer.get(), fd) < 0) {
        const int error = errno;
        restore();
        errno = error;
        throw_errno("dup2");
      }
    }
  }
  for (auto& source : sources) source.writer.close();
}

void ConsoleDescriptors::restore() noexcept {
  for (int i = 0; i < 2; ++i) {
    for (const auto& source : sources) {
      if (originals[i].is_open() && carries(source, kStandard[i]) && is_writer(kStandard[i], source))
        ::dup2(originals[i].get(), kStandard[i]);
    }
  }
}

}  // namespace ranklog::writer
