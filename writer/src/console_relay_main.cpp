// ranklog-console: started by the writer for itself, never by a person.
//
//   ranklog-console PID LAYOUT RANK_FILE RANK LAUNCH_TOKEN

#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "buried_lines.hpp"
#include "console_protocol.hpp"
#include "console_relay.hpp"
#include "secrets.hpp"

namespace {

using namespace ranklog::writer;

int parse_int(const char* text) {
  int value = -1;
  std::from_chars(text, text + std::strlen(text), value);
  return value;
}

void close_inherited() {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, static_cast<unsigned>(kRelayFirstUnused), ~0U, 0) == 0) return;
#endif
  const long limit = ::sysconf(_SC_OPEN_MAX);
  for (int fd = kRelayFirstUnused; fd < limit; ++fd) ::close(fd);
}

// It ends when nobody can print any more, and at nobody's wish: what stops the program must not lose its last
// words.
void ignore_signals() {
  for (int number = 1; number < NSIG; ++number) {
    switch (number) {
      case SIGSEGV:
      case SIGBUS:
      case SIGFPE:
      case SIGILL:
      case SIGABRT:
      case SIGCHLD:
        break;
      default:
        std::signal(number, SIG_IGN);  // fails for those that cannot be ignored
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("ranklog-console is started by programs that log with ranklog, and by nobody else\n", stderr);
    return 2;
  }
  ignore_signals();
  close_inherited();
  // No child of the program, whose own wait() must not meet it, and of no process group that is killed whole.
  const pid_t child = ::fork();
  if (child != 0) ::_exit(child < 0 ? 1 : 0);
  ::setsid();
  if (::chdir("/") != 0) return 1;  // keeps no file system busy
  try {
    const auto bury = [&](const std::vector<ConsoleLine>& lines) {
      try {
        bury_console_lines(argv[3], parse_int(argv[4]), argv[5], lines);
      } catch (const std::exception&) {  // the log is gone or damaged; children of the program still print
      }
    };
    ConsoleRelay(argv[2], parse_int(argv[1]), secrets_of(environ), bury).run();
  } catch (const std::exception&) {
    return 1;  // the program takes over its own output when it finds the relay gone
  }
  return 0;
}
