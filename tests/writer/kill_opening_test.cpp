// Killed between any two system calls of Writer::open(): what is there is whole, and a restart goes on.

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "helpers.hpp"
#include "ranklog/schema/naming.hpp"

namespace ranklog {
namespace {

constexpr int kRow = 7;

// A traced process: each step is the entry into a system call of its main thread, or the way out of one.
class TracedOpening {
 public:
  explicit TracedOpening(const Options& options) : pid_(::fork()) {
    if (pid_ != 0) return;
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(kNoTracing);
    ::raise(SIGSTOP);
    try {
      auto log = Writer::open(options);
      log.log(kRow, {{"row", kRow}});
      ::_exit(0);
    } catch (...) {
      ::_exit(99);
    }
  }
  ~TracedOpening() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  TracedOpening(const TracedOpening&) = delete;
  TracedOpening& operator=(const TracedOpening&) = delete;

  // False if the process has ended by itself.
  bool step(int steps) {
    for (int i = 0; i <= steps; ++i) {
      if (i > 0) ::ptrace(PTRACE_SYSCALL, pid_, nullptr, nullptr);
      int status = 0;
      if (::waitpid(pid_, &status, 0) != pid_) return false;
      if (WIFSTOPPED(status)) continue;
      pid_ = -1;
      exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return false;
    }
    return true;
  }
  [[nodiscard]] int exit_status() const { return exit_status_; }

  static constexpr int kNoTracing = 98;

 private:
  pid_t pid_;
  int exit_status_ = -1;
};

void expect_whole_files(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder)) return;
  for (const auto& name : test::list_folder(folder)) {
    if (!parse_rank_file_name(name)) continue;
    const auto file = folder / name;
    EXPECT_TRUE(RankFile::open(file).damage().empty());
    EXPECT_EQ(test::integrity_check(file), "ok");
    EXPECT_LE(test::read_rows(file).size(), 1U);
  }
}

void expect_a_restart_goes_on(const Options& options) {
  auto log = Writer::open(options);
  EXPECT_EQ(log.log(kRow, {{"row", kRow}}), LogStatus::kOk);
  EXPECT_TRUE(log.finish().durable);
  EXPECT_EQ(test::read_rows(log.path()).size(), 1U);
}

TEST(KillOpening, BetweenAnyTwoSystemCalls) {
  const test::ScopedEnvironment environment{{}};
  for (int steps = 0;; steps += 5) {
    SCOPED_TRACE(steps);
    const test::TempDir dir;
    const auto options = test::options_in(dir.path());
    {
      TracedOpening opening(options);
      if (!opening.step(steps)) {
        if (opening.exit_status() == TracedOpening::kNoTracing) GTEST_SKIP() << "ptrace is not allowed here";
        ASSERT_EQ(opening.exit_status(), 0);
        EXPECT_GT(steps, 50);
        return;
      }
    }
    expect_whole_files(dir.path() / "project" / "job");
    expect_a_restart_goes_on(options);
  }
}

}  // namespace
}  // namespace ranklog
