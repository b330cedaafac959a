// ranklog-train: flags in, exit status out.

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "local_launcher.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/trainer/c10d_communicator.hpp"
#include "ranklog/trainer/first_line.hpp"
#include "settings.hpp"
#include "worker.hpp"

namespace {

using ranklog::EnvLookup;
using ranklog::Error;
using ranklog::ErrorCode;
using ranklog::LaunchPlan;
using ranklog::Settings;

// The flags win over the variables.
EnvLookup with_flags(const Settings& settings, EnvLookup environment) {
  return
      [settings, environment = std::move(environment)](std::string_view name) -> std::optional<std::string> {
        if (name == "MASTER_ADDR" && !settings.master_addr.empty()) return settings.master_addr;
        if (name == "MASTER_PORT" && settings.master_port) return std::to_string(*settings.master_port);
        return environment(name);
      };
}

// One node needs no address, and can take any port.
LaunchPlan plan_launch(const Settings& settings, const EnvLookup& environment) {
  LaunchPlan plan;
  plan.ranks_here = *settings.nproc_per_node;
  plan.nodes = settings.nnodes;
  plan.node_rank = settings.node_rank;
  plan.master_addr = environment("MASTER_ADDR").value_or("");
  const std::string port = environment("MASTER_PORT").value_or("");
  if (plan.nodes > 1 && (plan.master_addr.empty() || port.empty())) {
    throw Error(
        ErrorCode::kUsage, "a job of " + std::to_string(plan.nodes) + " nodes needs a place to meet",
        "give --master_addr and --master_port (MASTER_ADDR, MASTER_PORT): the first node's address and "
        "a free port there, the same on every node");
  }
  if (plan.master_addr.empty()) plan.master_addr = "127.0.0.1";
  plan.master_port = port.empty() ? std::to_string(ranklog::pick_free_port()) : port;
  return plan;
}

void refuse_two_launchers(const EnvLookup& environment) {
  const std::string rank = environment("RANK").value_or("");
  if (rank.empty()) return;
  throw Error(ErrorCode::kUsage,
              "--nproc_per_node starts ranks, but RANK=" + rank +
                  " and WORLD_SIZE=" + environment("WORLD_SIZE").value_or("") +
                  " say that a launcher has already started this one",
              "leave out --nproc_per_node, or unset RANK and WORLD_SIZE");
}

int run(int argc, char** argv) {
  const EnvLookup process = ranklog::process_environment();
  const ranklog::ParsedSettings parsed = ranklog::parse_settings(argc, argv, process);
  if (!parsed.settings) return parsed.exit_status;
  const EnvLookup environment = with_flags(*parsed.settings, process);
  // A rank that was started with --nproc_per_node has the flag too.
  if (parsed.settings->nproc_per_node && !ranklog::started_by_local_launcher(process)) {
    refuse_two_launchers(process);
    return ranklog::run_local_ranks(plan_launch(*parsed.settings, environment), argv);
  }
  return ranklog::run_worker(*parsed.settings, environment);
}

}  // namespace

int main(int argc, char** argv) {
  // c10d's own warnings while ranks look for each other say nothing that our errors do not.
  ::setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const Error& e) {
    std::cerr << std::string("ranklog-train: ") + e.what() + "\n";
    return ranklog::exit_status(e.code());
  } catch (const std::exception& e) {
    std::cerr << "ranklog-train: " + ranklog::first_line(e.what()) + "\n";
    return ranklog::kExitFailed;
  }
}
