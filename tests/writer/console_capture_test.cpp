// What becomes of a program's output when its console is recorded: on the way to where it went before, and in
// the record. Each program is a forked child that ends by itself or is killed.

#include "console_capture.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "helpers.hpp"
#include "proc_files.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog::writer {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

using Lines = std::map<std::int64_t, std::string>;  // "E:" before those of stderr

struct Outcome {
  std::string out, err;  // what passed through
  Lines lines;           // what was recorded
  int status = 0;        // 128 + the signal
};

void print(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0) std::_Exit(77);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  return fds;
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 65536> block;
  for (ssize_t got = 0; (got = ::read(fd, block.data(), block.size())) != 0;) {
    if (got < 0 && errno == EIO) break;  // a terminal that has gone
    if (got > 0) text.append(block.data(), static_cast<std::size_t>(got));
  }
  ::close(fd);
  return text;
}

ConsoleCaptureSettings settings() {
  return {find_console_relay(), "/nowhere/rank-00000.db", 0, "token"};
}

// Writes lines where the test reads them.
ConsoleCapture::Sink write_lines_to(int fd) {
  return [fd](const ConsoleLine& line) {
    print(fd, std::to_string(line.number) + (line.from_stderr ? " E:" : " ") + line.text + "\n");
  };
}

Lines parse_lines(const std::string& text) {
  Lines lines;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    const auto blank = text.find(' ', at);
    lines[std::stoll(text.substr(at, blank - at))] = text.substr(blank + 1, end - blank - 1);
    at = end + 1;
  }
  return lines;
}

enum class Place { kOne, kTwo };

// Runs `program` with its console captured. Output is read until nobody can write any more: the relay too has
// ended then.
Outcome run(const std::function<int(ConsoleCapture&)>& program, Place place = Place::kOne) {
  const auto out = make_pipe(), err = make_pipe(), lines = make_pipe();
  test::Child child([&] {
    ::dup2(out[1], 1);
    ::dup2(place == Place::kOne ? out[1] : err[1], 2);
    for (const int fd : {out[0], out[1], err[0], err[1], lines[0]}) ::close(fd);
    ConsoleCapture capture(settings(), write_lines_to(lines[1]));
    const int status = program(capture);
    capture.stop(steady_clock::now() + 20s);
    return status;
  });
  for (const int fd : {out[1], err[1], lines[1]}) ::close(fd);
  Outcome outcome;
  std::string text;
  std::thread read_out([&] { outcome.out = read_to_end(out[0]); });
  std::thread read_err([&] { outcome.err = read_to_end(err[0]); });
  std::thread read_lines([&] { text = read_to_end(lines[0]); });
  outcome.status = child.wait();
  read_lines.join();
  read_out.join();
  read_err.join();
  outcome.lines = parse_lines(text);
  return outcome;
}

pid_t relay_of(pid_t program) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = parse_unsigned(entry.path().filename().native());
    if (!pid) continue;
    const auto line = read_small_file(entry.path() / "cmdline");
    if (line.find(std::string("ranklog-console\0", 16) + std::to_string(program) + '\0') != std::string::npos)
      return static_cast<pid_t>(*pid);
  }
  return -1;
}

TEST(ConsoleCapture, OrderOfStdoutAndStderrIsKeptWhereTheyGoToOnePlace) {
  std::string expected;
  for (int i = 0; i < 3000; ++i) expected += "out " + std::to_string(i) + "\nerr " + std::to_string(i) + "\n";
  const auto outcome = run([](ConsoleCapture&) {
    for (int i = 0; i < 3000; ++i) {
      print(1, "out " + std::to_string(i) + "\n");
      print(2, "err " + std::to_string(i) + "\n");
    }
    return 0;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, expected);
  ASSERT_EQ(outcome.lines.size(), 6000U);
  EXPECT_EQ(outcome.lines.at(0), "out 0");
  EXPECT_EQ(outcome.lines.at(5999), "err 2999");
}

TEST(ConsoleCapture, StdoutAndStderrStayApartWhereTheyGoToTwoPlaces) {
  const auto outcome = run(
      [](ConsoleCapture& capture) {
        print(1, "out\n");
        EXPECT_TRUE(capture.flush(steady_clock::now() + 10s));
        print(2, "err\n");
        return 0;
      },
      Place::kTwo);
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(outcome.lines, (Lines{{0, "out"}, {1, "E:err"}}));
}

TEST(ConsoleCapture, EveryBytePassesThroughUnchanged) {
  std::mt19937 random(1);
  std::string bytes(3 << 20, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  const auto outcome = run(
      [&](ConsoleCapture&) {
        print(1, bytes);
        print(2, std::string_view(bytes).substr(1000));
        return 0;
      },
      Place::kTwo);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.out == bytes);
  EXPECT_TRUE(outcome.err == bytes.substr(1000));
}

TEST(ConsoleCapture, WhatStdioHoldsBackIsRecordedToo) {
  const auto outcome = run([](ConsoleCapture&) {
    std::printf("no newline and no flush");
    return 0;
  });
  EXPECT_EQ(outcome.out, "no newline and no flush");
  EXPECT_EQ(outcome.lines, (Lines{{0, "no newline and no flush"}}));
}

TEST(ConsoleCapture, ProgressBarsAreOneLine) {
  const auto outcome = run([](ConsoleCapture&) {
    for (int i = 0; i <= 100; ++i) print(1, "\r" + std::to_string(i) + "%|" + std::string(i / 10, '#'));
    print(1, "\ndone\n");
    return 0;
  });
  EXPECT_EQ(outcome.lines, (Lines{{0, "100%|##########"}, {1, "done"}}));
}

TEST(ConsoleCapture, SecretsAreMaskedInTheRecordAndPassThrough) {
  ::setenv("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567", 1);
  ::setenv("MAX_TOKENS", "1234567", 1);
  const auto outcome = run([](ConsoleCapture&) {
    print(1, "key=0123456789abcdef0123456789abcdef01234567!\nmax 1234567\n");
    return 0;
  });
  ::unsetenv("WANDB_API_KEY");
  ::unsetenv("MAX_TOKENS");
  EXPECT_EQ(outcome.out, "key=0123456789abcdef0123456789abcdef01234567!\nmax 1234567\n");
  EXPECT_EQ(outcome.lines, (Lines{{0, "key=***!"}, {1, "max 1234567"}}));
}

TEST(ConsoleCapture, ProgramsThatItRunsAreRecorded) {
  const auto outcome = run(
      [](ConsoleCapture&) {
        return std::system("echo from a shell; echo its error >&2; echo by name > /dev/stderr");
      },
      Place::kTwo);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "from a shell\n");
  EXPECT_EQ(outcome.err, "its error\nby name\n");
  EXPECT_EQ(outcome.lines.size(), 3U);
}

TEST(ConsoleCapture, ForkedChildrenAreRecorded) {
  constexpr int kChildren = 4, kLines = 200;
  const auto outcome = run([](ConsoleCapture&) {
    for (int child = 0; child < kChildren; ++child) {
      if (::fork() != 0) continue;
      for (int i = 0; i < kLines; ++i)
        print(1, "child " + std::to_string(child) + " " + std::to_string(i) + "\n");
      std::_Exit(0);
    }
    int failed = 0;
    for (int status = 0; ::wait(&status) > 0;) failed += status;
    return failed;
  });
  EXPECT_EQ(outcome.status, 0);
  std::set<std::string> texts;
  for (const auto& [number, text] : outcome.lines) texts.insert(text);
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(kChildren * kLines));
}

TEST(ConsoleCapture, NothingPrintedIsLostByAKill) {
  for (int i = 0; i < 20; ++i) {
    const std::string last = "last words " + std::to_string(i) + "\n";
    const auto outcome = run([&](ConsoleCapture&) {
      std::printf("%s", last.c_str());
      std::fflush(stdout);
      ::raise(i % 2 == 0 ? SIGKILL : SIGABRT);
      return 0;
    });
    EXPECT_EQ(outcome.status, 128 + (i % 2 == 0 ? SIGKILL : SIGABRT));
    EXPECT_EQ(outcome.out, last);
  }
}

TEST(ConsoleCapture, ASignalToTheWholeGroupLosesNothing) {
  const auto outcome = run([&](ConsoleCapture&) {
    ::setpgid(0, 0);
    print(1, "before the group is killed\n");
    ::kill(0, SIGKILL);
    return 0;
  });
  EXPECT_EQ(outcome.out, "before the group is killed\n");
}

TEST(ConsoleCapture, AChildThatOutlivesTheProgramGoesOnPrinting) {
  const std::string much(300'000, 'x');
  const auto outcome = run([&](ConsoleCapture&) {
    const auto parent = ::getpid();
    if (::fork() == 0) {
      while (::getppid() == parent) ::usleep(1000);
      for (int i = 0; i < 5; ++i) {
        ::usleep(10'000);
        print(1, much);
      }
      print(1, "end");
      std::_Exit(0);
    }
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(outcome.out.size(), 5 * much.size() + 3);
  EXPECT_TRUE(outcome.out.ends_with("end"));
}

TEST(ConsoleCapture, AfterTheEndChildrenPrintOnAndAreNotRecorded) {
  const auto go = make_pipe();
  const auto outcome = run([&](ConsoleCapture& capture) {
    if (::fork() == 0) {
      char byte = 0;
      static_cast<void>(!::read(go[0], &byte, 1));
      print(1, "late\n");
      std::_Exit(0);
    }
    print(1, "early\n");
    capture.stop(steady_clock::now() + 10s);
    print(1, "after\n");
    print(go[1], "!");
    return 0;
  });
  EXPECT_EQ(outcome.out, "early\nafter\nlate\n");
  EXPECT_EQ(outcome.lines, (Lines{{0, "early"}}));
}

// Greatest so far, in KiB.
long resident_kb(pid_t pid) {
  const auto status = read_small_file("/proc/" + std::to_string(pid) + "/status");
  const auto line = status.find("VmHWM:");
  return line == std::string::npos ? -1 : std::strtol(status.c_str() + line + 6, nullptr, 10);
}

std::string many_lines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += std::string(99, 'x') + "\n";
  return lines;
}

TEST(ConsoleCapture, AHundredMegabytesTakeBoundedMemory) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr long kMaxKb = 1 << 20;  // they keep what was freed, and shadows of it
#else
  constexpr long kMaxKb = 48 << 10;
#endif
  const std::string lines = many_lines(10'000), block(1'000'000, 'x');
  const auto out = make_pipe();
  test::Child child([&] {
    ::dup2(out[1], 1);
    ::dup2(out[1], 2);
    ::close(out[0]);
    ::close(out[1]);
    std::size_t recorded = 0;
    ConsoleCapture capture(settings(), [&](const ConsoleLine& line) { recorded += line.text.size(); });
    for (int i = 0; i < 50; ++i) print(1, lines);
    for (int i = 0; i < 50; ++i) print(2, block);  // one line
    const long relay_kb = resident_kb(relay_of(::getpid()));
    capture.stop(steady_clock::now() + 60s);
    if (recorded < std::size_t{50} * 10'000 * 99) return 1;
    if (relay_kb <= 0 || relay_kb > kMaxKb) return 2;
    return resident_kb(::getpid()) < kMaxKb ? 0 : 3;
  });
  ::close(out[1]);
  std::size_t passed = 0;
  std::vector<char> bytes(1 << 16);
  for (ssize_t got = 0; (got = ::read(out[0], bytes.data(), bytes.size())) > 0;)
    passed += static_cast<std::size_t>(got);
  ::close(out[0]);
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(passed, 100'000'000U);
}

TEST(ConsoleCapture, ALogThatHangsHoldsUpNeitherPrintingNorTheEnd) {
  const auto out = make_pipe();
  test::Child child([&] {
    ::dup2(out[1], 1);
    ::close(out[0]);
    ::close(out[1]);
    ConsoleCapture capture(settings(), [](const ConsoleLine&) { ::pause(); });
    const std::string lines = many_lines(10'000);
    for (int i = 0; i < 30; ++i) print(1, lines);  // 30 MB
    const auto start = steady_clock::now();
    capture.stop(start + 500ms);
    return steady_clock::now() - start < 10s ? 0 : 1;
  });
  ::close(out[1]);
  std::string passed;
  std::thread reader([&] { passed = read_to_end(out[0]); });
  EXPECT_EQ(child.wait(), 0);
  reader.join();
  EXPECT_EQ(passed.size(), 30'000'000U);
}

TEST(ConsoleCapture, ATerminalStaysATerminal) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::grantpt(terminal) | ::unlockpt(terminal), 0);
  const int slave = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(slave, 0) << "no pseudo-terminals here";
  winsize size{33, 77, 0, 0};
  ::ioctl(slave, TIOCSWINSZ, &size);
  const auto lines = make_pipe();
  test::Child child([&] {
    ::dup2(slave, 1);
    ::dup2(slave, 2);
    ::close(slave);
    ::close(terminal);
    ConsoleCapture capture(settings(), write_lines_to(lines[1]));
    winsize seen{};
    ::ioctl(1, TIOCGWINSZ, &seen);
    const bool fits = ::isatty(1) != 0 && ::isatty(2) != 0 && seen.ws_col == 77 && seen.ws_row == 33;
    print(1, "to a terminal\n");
    print(2, "too\n");
    capture.stop(steady_clock::now() + 10s);
    return fits && ::isatty(1) != 0 ? 0 : 1;
  });
  ::close(slave);
  ::close(lines[1]);
  std::string seen;
  std::thread reader([&] { seen = read_to_end(terminal); });
  EXPECT_EQ(child.wait(), 0);
  reader.join();
  EXPECT_EQ(seen, "to a terminal\r\ntoo\r\n") << "the real terminal adds its carriage returns, once";
  EXPECT_EQ(parse_lines(read_to_end(lines[0])), (Lines{{0, "to a terminal"}, {1, "too"}}));
}

int count_descriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += entry.path().empty() ? 0 : 1;
  return count;
}

std::pair<dev_t, ino_t> place_of(int fd) {
  struct stat facts{};
  ::fstat(fd, &facts);
  return {facts.st_dev, facts.st_ino};
}

TEST(ConsoleCapture, TheEndPutsTheDescriptorsBackAndLeavesNone) {
  const auto out = make_pipe();
  test::Child child([&] {
    ::dup2(out[1], 1);
    ::close(out[0]);
    const auto before = place_of(1);
    const int descriptors = count_descriptors();
    for (int i = 0; i < 20; ++i) {
      ConsoleCapture capture(settings(), [](const ConsoleLine&) {});
      if (place_of(1) == before) return 1;
      capture.stop(steady_clock::now() + 10s);
      if (place_of(1) != before) return 2;
    }
    return count_descriptors() == descriptors ? 0 : 3;
  });
  ::close(out[1]);
  EXPECT_EQ(child.wait(), 0);
  ::close(out[0]);
}

TEST(ConsoleCapture, StdoutThatTheProgramHasMovedStaysThere) {
  const test::TempDir dir;
  const auto outcome = run([&](ConsoleCapture& capture) {
    print(1, "captured\n");
    const int file = ::open((dir / "log").c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(file, 1);
    capture.stop(steady_clock::now() + 10s);
    print(1, "in its file\n");
    print(2, "as before\n");
    return 0;
  });
  EXPECT_EQ(outcome.out, "captured\nas before\n");
  EXPECT_EQ(test::read_file(dir / "log"), "in its file\n");
}

TEST(ConsoleCapture, OneAtATimeInAProcess) {
  const auto outcome = run([](ConsoleCapture& capture) {
    try {
      ConsoleCapture second(settings(), [](const ConsoleLine&) {});
      return 1;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBusy) return 2;
    }
    print(1, "still recorded\n");
    capture.stop(steady_clock::now() + 10s);
    ConsoleCapture third(settings(), [](const ConsoleLine&) {});
    return 0;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.lines, (Lines{{0, "still recorded"}}));
}

TEST(ConsoleCapture, AProgramWhoseRelayIsKilledPrintsOn) {
  const auto outcome = run([](ConsoleCapture&) {
    print(1, "before\n");
    ::usleep(50'000);
    const pid_t relay = relay_of(::getpid());
    if (relay <= 0 || ::kill(relay, SIGKILL) != 0) return 1;
    for (int i = 0; i < 1000; ++i) {
      print(1, "after\n");
      ::usleep(100);
    }
    return 0;
  });
  EXPECT_EQ(outcome.status, 0);
  std::string expected = "before\n";
  for (int i = 0; i < 1000; ++i) expected += "after\n";
  EXPECT_EQ(outcome.out, expected);
}

TEST(ConsoleCapture, TheRelayIsNoChildOfTheProgram) {
  const auto outcome =
      run([](ConsoleCapture&) { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD ? 0 : 1; });
  EXPECT_EQ(outcome.status, 0);
}

TEST(ConsoleCapture, ANonBlockingTargetGetsEveryByte) {
  const auto out = make_pipe();
  ::fcntl(out[1], F_SETFL, O_NONBLOCK);
  test::Child child([&] {
    ::dup2(out[1], 1);
    ::close(out[0]);
    ::close(out[1]);
    ConsoleCapture capture(settings(), [](const ConsoleLine&) {});
    print(1, std::string(3'000'000, 'x'));
    return 0;
  });
  ::close(out[1]);
  ::usleep(200'000);
  EXPECT_EQ(read_to_end(out[0]).size(), 3'000'000U);
  EXPECT_EQ(child.wait(), 0);
}

TEST(ConsoleCapture, AReaderThatHasGoneDoesNotEndTheProgram) {
  const auto out = make_pipe(), lines = make_pipe();
  test::Child child([&] {
    ::dup2(out[1], 1);
    ::dup2(out[1], 2);
    for (const int fd : {out[0], out[1], lines[0]}) ::close(fd);
    ConsoleCapture capture(settings(), write_lines_to(lines[1]));
    for (int i = 0; i < 1000; ++i) print(1, "nobody reads this\n");
    capture.stop(steady_clock::now() + 10s);
    return 0;
  });
  for (const int fd : {out[0], out[1], lines[1]}) ::close(fd);
  EXPECT_EQ(parse_lines(read_to_end(lines[0])).size(), 1000U);
  EXPECT_EQ(child.wait(), 0);
}

TEST(ConsoleCapture, WithoutARelayProgramItSaysWhatToDo) {
  auto nowhere = settings();
  nowhere.relay.clear();
  try {
    ConsoleCapture capture(nowhere, [](const ConsoleLine&) {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("RANKLOG_CONSOLE_RELAY"), std::string::npos);
  }
  nowhere.relay = "/nowhere/ranklog-console";
  EXPECT_THROW(ConsoleCapture(nowhere, [](const ConsoleLine&) {}), Error);
}

}  // namespace
}  // namespace ranklog::writer
