// wandb-sync: from rank files to W&B runs.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "command_line.hpp"
#include "console_progress.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/printable.hpp"
#include "ranklog/sync/curl_transport.hpp"
#include "ranklog/sync/plan_view.hpp"
#include "ranklog/sync/push.hpp"

namespace ranklog::sync {
namespace {

StopFlag stop_flag;

// The first asks to stop; the second ends the process as if it had not been caught: the state file is sound
// at any moment.
extern "C" void on_signal(int number) {
  if (stop_flag.count() > 0) {
    std::signal(number, SIG_DFL);
    (void)std::raise(number);  // comes when the handler returns
  }
  stop_flag.raise(number);
}

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool is_quiet(const Environment& environment) {
  return is_true(environment("WANDB_SILENT").value_or("")) ||
         is_true(environment("WANDB_QUIET").value_or(""));
}

PlanOptions plan_options(const Command& command, const ServerSettings& server) {
  PlanOptions options;
  options.strategy = command.strategy;
  options.main_rank = command.main_rank;
  options.entity = command.entity;
  options.default_entity = server.entity;
  options.project = command.project;
  options.run_id = command.run_id;
  options.group = command.group;
  options.job_type = command.job_type;
  options.now_ns = system_clock().unix_ns();
  options.stale_seconds = static_cast<std::int64_t>(command.stale_s);
  return options;
}

void refuse_empty(const Plan& plan, const Command& command) {
  if (!plan.experiments.empty() || !plan.problems.empty()) return;
  std::string looked;
  for (const auto& path : command.paths) looked += (looked.empty() ? "" : ", ") + path.string();
  throw Error(ErrorCode::kUsage,
              "no rank logs in " + looked + " (looked for <project>/<experiment>/rank-*.db)",
              "name the folder that training logged into");
}

// Before anything is sent: what will be.
void announce(const Plan& plan) {
  constexpr std::size_t kShown = 20;
  for (std::size_t i = 0; i < plan.experiments.size() && i < kShown; ++i) {
    const PlannedExperiment& planned = plan.experiments[i];
    std::vector<int> ranks;
    for (const PlannedRun& run : planned.runs) ranks.push_back(run.rank);
    const std::string of = ranks.empty() ? "" : " (rank " + rank_list(ranks) + ")";
    std::cerr << printable(planned.experiment.project + '/' + planned.experiment.id) << ": strategy "
              << to_string(planned.strategy) << ", " << count_text(planned.runs.size(), "run") << of << '\n';
  }
  if (plan.experiments.size() > kShown) std::cerr << "+" << plan.experiments.size() - kShown << " more\n";
}

// A line of stdin, or what there is of it when a stop is asked for: a signal may come before the read begins.
std::string read_answer() {
  constexpr int kLookMs = 100;
  std::string answer;
  while (stop_flag.count() == 0) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, kLookMs) <= 0) continue;
    char byte = 0;
    if (::read(STDIN_FILENO, &byte, 1) != 1 || byte == '\n') break;
    answer += byte;
  }
  return answer;
}

bool confirmed(const Command& command) {
  if (command.paths_given || command.yes || isatty(STDIN_FILENO) == 0) return true;
  std::cerr << "Upload? [y/N] ";
  const std::string answer = read_answer();
  return answer == "y" || answer == "Y" || answer == "yes";
}

int show_plan(Plan plan, bool json) {
  const PlanView view = view_plan(std::move(plan), stop_flag);
  std::cout << (json ? plan_json(view) : plan_text(view));
  return exit_status(view);
}

int push_and_report(const Plan& plan, const Command& command, const ServerSettings& server,
                    const Environment& environment) {
  const bool quiet = is_quiet(environment);
  if (!quiet) announce(plan);
  const bool agreed = confirmed(command);
  throw_if_stopped(stop_flag);
  if (!agreed) return kExitFailed;
  CurlTransport transport({server.verify_tls, server.ca_file, std::string("ranklog/") + RANKLOG_VERSION},
                          stop_flag);
  PushOptions options;
  options.server = server;
  options.state_dir = command.state_dir;
  options.patience = std::chrono::milliseconds(static_cast<std::int64_t>(command.timeout_s * 1000));
  options.parallel_runs = command.parallel;
  options.skip_synced = command.skip_synced;
  options.new_generation = command.new_generation;
  PushReport report;
  {
    ConsoleProgress progress(quiet);
    report = push(plan, options, {environment, transport, system_clock(), stop_flag, progress});
  }
  std::cout << (command.json ? report_json(report) : report_text(report, command.verbose));
  return exit_status(report);
}

int run(int argc, char** argv) {
  const Environment environment = process_environment();
  const auto parsed = parse_command_line(argc, argv, environment);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  const Command& command = std::get<Command>(parsed);
  const ServerSettings server = find_server(environment);
  Plan plan = make_plan(command.paths, plan_options(command, server));
  throw_if_stopped(stop_flag);
  refuse_empty(plan, command);
  if (command.plan_only) return show_plan(std::move(plan), command.json);
  return push_and_report(plan, command, server, environment);
}

// A reader that has seen enough and left is none that misses anything.
void require_written(const std::ostream& out) {
  if (out || errno == EPIPE) return;
  throw Error(ErrorCode::kIo, "cannot write the output: " + errno_text(errno));
}

// One line for a person; where JSON was asked for, also a document for the program that waits for one.
int fail(int status, const std::string& message, int argc, char** argv) {
  std::fprintf(stderr, "wandb-sync: %s\n", printable(message).c_str());
  if (std::find(argv, argv + argc, std::string_view("--json")) != argv + argc) {
    std::cout << error_json(status, message);
  }
  return status;
}

}  // namespace
}  // namespace ranklog::sync

int main(int argc, char** argv) {
  using namespace ranklog;
  constexpr int kSignalBase = 128;
  const auto status_of = [](int status) {
    return sync::stop_flag.count() > 0 ? kSignalBase + sync::stop_flag.signal_number() : status;
  };
  try {
    sync::catch_signals();
    const int status = sync::run(argc, argv);
    sync::require_written(std::cout.flush());
    return status;
  } catch (const Error& error) {
    return sync::fail(status_of(exit_status(error.code())), error.what(), argc, argv);
  } catch (const std::exception& error) {
    return sync::fail(status_of(kExitFailed), error.what(), argc, argv);
  }
}
