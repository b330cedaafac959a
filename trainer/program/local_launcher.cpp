#include "local_launcher.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <vector>

#include "ranklog/schema/error.hpp"

extern char** environ;

namespace ranklog {
namespace {

using Clock = std::chrono::steady_clock;

// After the first failure: until the others are asked to stop, and from then until they are made to.
constexpr std::chrono::seconds kTimeToNotice{20};
constexpr std::chrono::seconds kTimeToStop{10};

constexpr char kLauncherVariable[] = "RANKLOG_TRAIN_LAUNCHER";  // its process id, told to the ranks

struct Child {
  pid_t pid = -1;
  int rank = 0;
  bool running = true;
};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, signal);
  return set;
}

std::vector<std::string> environment_of(const LaunchPlan& plan, int local_rank) {
  const std::vector<std::pair<std::string, std::string>> ours = {
      {"RANK", std::to_string(plan.node_rank * plan.ranks_here + local_rank)},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"WORLD_SIZE", std::to_string(plan.nodes * plan.ranks_here)},
      {"LOCAL_WORLD_SIZE", std::to_string(plan.ranks_here)},
      {"GROUP_RANK", std::to_string(plan.node_rank)},
      {"MASTER_ADDR", plan.master_addr},
      {"MASTER_PORT", plan.master_port},
      {kLauncherVariable, std::to_string(getpid())}};
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& item : ours) replaced = replaced || item.first == name;
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : ours) all.push_back(name + "=" + value);
  return all;
}

class LocalRanks {
 public:
  LocalRanks(const LaunchPlan& plan, char** argv) : plan_(plan), argv_(argv) {
    const sigset_t set = watched_signals();
    sigprocmask(SIG_BLOCK, &set, &mask_before_);
    // Where the parent ignored it, that is inherited, and the kernel would keep no child's status.
    std::signal(SIGCHLD, SIG_DFL);
    sigemptyset(&passed_on_);
  }

  int run() {
    for (int local_rank = 0; local_rank < plan_.ranks_here; ++local_rank) start(local_rank);
    while (running() > 0) wait_for_news();
    return first_failure_.value_or(0);
  }

 private:
  [[nodiscard]] int running() const {
    int count = 0;
    for (const Child& child : children_) count += child.running ? 1 : 0;
    return count;
  }

  void start(int local_rank) {
    std::vector<std::string> environment = environment_of(plan_, local_rank);
    std::vector<char*> pointers;
    for (std::string& entry : environment) pointers.push_back(entry.data());
    pointers.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) become_rank(parent, pointers.data());
    if (pid < 0) {
      std::cerr << "ranklog-train: cannot start local rank " << local_rank << ": " << errno_text(errno)
                << "\n";
      note_failure(kExitFailed);
      return;
    }
    setpgid(pid, pid);  // in both processes, so that it is done whichever runs first
    children_.push_back({pid, plan_.node_rank * plan_.ranks_here + local_rank, true});
  }

  // In the child. A rank does not outlive the launcher: it is asked to stop as by a preemption. In a process
  // group of its own it gets Ctrl-C from the launcher only; twice, once from the terminal, would mean "now".
  [[noreturn]] void become_rank(pid_t parent, char* const* environment) {
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kExitFailed);
    execve("/proc/self/exe", argv_, environment);
    _exit(kExitFailed);
  }

  void wait_for_news() {
    const sigset_t set = watched_signals();
    const timespec limit{1, 0};
    const int signal = sigtimedwait(&set, nullptr, &limit);
    reap();
    if (signal > 0 && signal != SIGCHLD) pass_on(signal);
    stop_late_ones();
  }

  void reap() {
    for (Child& child : children_) {
      int status = 0;
      if (!child.running) continue;
      const pid_t ended = waitpid(child.pid, &status, WNOHANG);
      if (ended == 0 || (ended < 0 && errno != ECHILD)) continue;
      child.running = false;
      if (ended < 0) {
        std::cerr << "ranklog-train: rank " << child.rank << " (pid " << child.pid
                  << ") has ended, and nobody knows how\n";
        note_failure(kExitFailed);
      } else if (WIFSIGNALED(status)) {
        std::cerr << "ranklog-train: rank " << child.rank << " (pid " << child.pid
                  << ") was killed by signal " << WTERMSIG(status) << " (" << strsignal(WTERMSIG(status))
                  << ")\n";
        note_failure(status_of_killed(WTERMSIG(status)));
      } else if (WEXITSTATUS(status) != 0) {
        note_failure(WEXITSTATUS(status));
      }
    }
  }

  // The rank that ends first need not be the one that failed first: others fail because of it, with 1. So a
  // status that says more replaces that one.
  void note_failure(int status) {
    const bool says_more = status == kExitUsage || status == kExitDamaged;
    if (first_failure_ == kExitFailed && says_more) first_failure_ = status;
    if (first_failure_) return;
    first_failure_ = status;
    failed_at_ = Clock::now();
  }

  void pass_on(int signal) {
    sigaddset(&passed_on_, signal);
    send(signal);
  }

  // A rank that had not begun, or was told twice, dies of what this job was asked to stop by.
  [[nodiscard]] int status_of_killed(int signal) const {
    return sigismember(&passed_on_, signal) == 1 ? 128 + signal : kExitFailed;
  }

  void stop_late_ones() {
    if (!first_failure_) return;
    const auto since = Clock::now() - failed_at_;
    if (since > kTimeToNotice + kTimeToStop) {
      send(SIGKILL);
    } else if (since > kTimeToNotice && !asked_to_stop_) {
      asked_to_stop_ = true;
      send(SIGTERM);
    }
  }

  void send(int signal) {
    for (const Child& child : children_) {
      if (child.running) kill(child.pid, signal);
    }
  }

  const LaunchPlan plan_;
  char** argv_;
  sigset_t mask_before_{};
  sigset_t passed_on_{};
  std::vector<Child> children_;
  std::optional<int> first_failure_;
  Clock::time_point failed_at_;
  bool asked_to_stop_ = false;
};

}  // namespace

int run_local_ranks(const LaunchPlan& plan, char** argv) {
  return LocalRanks(plan, argv).run();
}

bool started_by_local_launcher(const EnvLookup& environment) {
  return environment(kLauncherVariable).value_or("") == std::to_string(getppid());
}

}  // namespace ranklog
