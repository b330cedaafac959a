#include "settings.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <system_error>

#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/suggest.hpp"

namespace ranklog {
namespace {

constexpr char kDescription[] =
    "Trains a small network on handwritten digits with several processes (\"ranks\"), as an example of\n"
    "distributed training that logs every rank and saves checkpoints, without any network but the ranks' "
    "own.\n"
    "\n"
    "  ranklog-train                                     one process\n"
    "  ranklog-train --nproc_per_node 4                  four ranks on this machine\n"
    "  ranklog-train --nproc_per_node 2 --nnodes 2 --node_rank 0 --master_addr HOST --master_port 29500\n"
    "                                                    the first of two nodes with two ranks each\n"
    "  srun|mpirun|torchrun --no-python ... ranklog-train\n"
    "                                                    ranks that a launcher has started (RANK, WORLD_SIZE "
    "...)\n";

constexpr char kFooter[] =
    "\nLogs and checkpoints go to <log_dir>/<project>/<run_id>/, one file a rank. Look at them with\n"
    "'ranklog ls' and 'ranklog query'; upload them with 'wandb-sync'.\n"
    "\n"
    "Signals: SIGTERM and SIGUSR1 finish the step, save a checkpoint and exit with 75 (run the same command\n"
    "again with --resume); Ctrl-C finishes the step and exits with 130, a second Ctrl-C ends at once.\n"
    "\n"
    "Exit status: 0 done; 1 failed, or another rank did or was killed; 2 wrong flags, variables or data, or "
    "no\n"
    "such data file; 5 the checkpoint to resume from is damaged; 75 preempted, state saved; 130\n"
    "interrupted; 143 (SIGTERM) or 138 (SIGUSR1) stopped before the ranks had met, nothing saved.";

// W&B's guide writes --log_strategy; habit writes --log-strategy. Both are accepted.
std::string both_spellings(const std::string& name) {
  std::string dashed = name;
  for (char& c : dashed) {
    if (c == '_') c = '-';
  }
  return dashed == name ? "--" + name : "--" + name + ",--" + dashed;
}

// build/<preset>/bin and build/<preset>/share, or the same two of an installation.
std::filesystem::path shipped_data() {
  std::error_code problem;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", problem);
  const auto bin = program.parent_path();
  auto shipped = bin.parent_path() / "share" / "ranklog" / "digits.csv.gz";
  const auto in_checkout =
      (bin / "../../../trainer/data/digits.csv.gz").lexically_normal();  // build/<preset>/bin
  if (!std::filesystem::exists(shipped, problem) && std::filesystem::exists(in_checkout, problem)) {
    return in_checkout;
  }
  return shipped;
}

std::string first_set(const EnvLookup& environment, std::initializer_list<const char*> names,
                      std::string otherwise) {
  for (const char* name : names) {
    if (auto value = environment(name); value && !value->empty()) return *value;
  }
  return otherwise;
}

// "nan" passes the range checks, as it compares with nothing.
std::string require_finite(const std::string& text) {
  double value = 0;
  if (CLI::detail::lexical_cast(text, value) && !std::isfinite(value))
    return text + " is not a finite number";
  return {};
}

class SettingsParser {
 public:
  explicit SettingsParser(const EnvLookup& environment) : app_(kDescription, "ranklog-train") {
    settings_.data = shipped_data();
    settings_.log_dir = default_log_folder(environment).string();
    settings_.project = first_set(environment, {"RANKLOG_PROJECT", "WANDB_PROJECT"}, "distributed-wandb");
    defaults_ = settings_;
    app_.set_version_flag("--version", "ranklog-train " RANKLOG_VERSION " (" + libtorch_version() + ")");
    app_.footer(kFooter);
    app_.option_defaults()->always_capture_default();
    add_logging();
    add_training();
    add_checkpoints();
    add_launching();
  }

  ParsedSettings parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
      if (settings_.log_dir.empty()) settings_.log_dir = defaults_.log_dir;  // --log_dir "$UNSET"
      if (settings_.project.empty()) settings_.project = defaults_.project;
      settings_.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout_seconds_ * 1000));
      if (!strategy_.empty()) settings_.log_strategy = parse_strategy(strategy_);
      require_sane_node();
      return {settings_, 0};
    } catch (const CLI::Success& e) {  // --help, --version
      return {std::nullopt, app_.exit(e)};
    } catch (const CLI::ExtrasError&) {
      return usage_error(describe_unexpected());
    } catch (const CLI::ParseError& e) {
      return usage_error(e.what());
    } catch (const Error& e) {
      return usage_error(e.what());
    }
  }

 private:
  template <typename T>
  CLI::Option* option(const std::string& name, T& value, const std::string& description, const char* group) {
    return app_.add_option(both_spellings(name), value, description)->group(group);
  }

  void add_logging() {
    constexpr char kGroup[] = "Logging";
    option("log_strategy", strategy_,
           "which ranks become W&B runs when the logs are uploaded, unless wandb-sync is told otherwise: "
           "main (rank 0), node (local rank 0 of each node) or all; every rank logs in any case",
           kGroup)
        ->type_name("main|node|all");
    option("group_name", settings_.group, "W&B group of the runs (WANDB_RUN_GROUP)", kGroup)
        ->type_name("NAME");
    option("project", settings_.project, "W&B project (RANKLOG_PROJECT, WANDB_PROJECT)", kGroup)
        ->type_name("NAME");
    app_.add_option(
            "--run_id,--run-id,--experiment", settings_.run_id,
            "name of this run and of its folder (RANKLOG_RUN_ID, WANDB_RUN_ID, the launcher's job id; "
            "else a new one); where it was used before, and without --resume, the run becomes ID~2, ID~3 ...")
        ->group(kGroup)
        ->type_name("ID");
    option("log_dir", settings_.log_dir, "folder for logs and checkpoints (RANKLOG_DIR)", kGroup)
        ->type_name("DIR");
  }

  void add_training() {
    constexpr char kGroup[] = "Training";
    TrainingOptions& t = settings_.training;
    option("epochs", t.epochs, "passes over the training images", kGroup)
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
        ->type_name("N");
    option("batch_size", t.batch_size, "images a rank and step", kGroup)
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
        ->type_name("N");
    app_.add_option("--lr,--learning_rate,--learning-rate", t.learning_rate, "learning rate of SGD")
        ->group(kGroup)
        ->check(CLI::NonNegativeNumber)
        ->check(require_finite)
        ->type_name("X");
    option("momentum", t.momentum, "momentum of SGD", kGroup)
        ->check(CLI::Range(0.0, 1.0))
        ->check(require_finite)
        ->type_name("X");
    option("seed", t.seed, "of the first parameters and the order of the images", kGroup)->type_name("N");
    option("data", settings_.data, "digits: rows of 64 pixels (0..16) and a label, .csv or .csv.gz", kGroup)
        ->type_name("FILE");
  }

  void add_checkpoints() {
    constexpr char kGroup[] = "Checkpoints";
    TrainingOptions& t = settings_.training;
    option("checkpoint_interval", t.checkpoint_interval,
           "epochs from one to the next; 0: only when preempted", kGroup)
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000}))
        ->type_name("N");
    option("keep", t.keep,
           "how many of the newest are kept; 0: all. The removal of others is recorded in the log, and "
           "those that were not uploaded before are then missing among the artifact's versions",
           kGroup)
        ->check(CLI::Range(0, 1'000'000))
        ->type_name("N");
    app_.add_flag("--resume", settings_.resume,
                  "go on from the newest whole checkpoint of --run_id (RANKLOG_RESUME=auto); from the start "
                  "where there is none")
        ->group(kGroup);
  }

  void add_launching() {
    constexpr char kGroup[] = "Ranks";
    option("nproc_per_node", settings_.nproc_per_node,
           "start so many ranks on this machine and wait for them", kGroup)
        ->check(CLI::Range(1, 1024))
        ->type_name("N");
    option("nnodes", settings_.nnodes, "machines in the job", kGroup)
        ->check(CLI::Range(1, 100'000))
        ->envname("NNODES")
        ->type_name("N");
    option("node_rank", settings_.node_rank, "number of this machine, from 0", kGroup)
        ->check(CLI::Range(0, 100'000))
        ->envname("NODE_RANK")
        ->type_name("N");
    option("master_addr", settings_.master_addr, "where rank 0 runs (MASTER_ADDR)", kGroup)
        ->type_name("HOST");
    option("master_port", settings_.master_port, "a free port there (MASTER_PORT)", kGroup)
        ->check(CLI::Range(1, 65535))
        ->type_name("PORT");
    option("timeout", timeout_seconds_, "seconds to wait for a rank that does not come", kGroup)
        ->check(CLI::Range(0.1, 1e6))
        ->check(require_finite)
        ->type_name("S");
  }

  void require_sane_node() const {
    if (settings_.node_rank < settings_.nnodes) return;
    throw Error(ErrorCode::kUsage, "node rank " + std::to_string(settings_.node_rank) +
                                       " (--node_rank, NODE_RANK) is " + "not below the number of nodes " +
                                       std::to_string(settings_.nnodes) + " (--nnodes, NNODES)");
  }

  // CLI11 itself lists what it does not know in an order of its own.
  [[nodiscard]] std::string describe_unexpected() const {
    const std::vector<std::string> unexpected = app_.remaining();
    const auto flag = std::find_if(unexpected.begin(), unexpected.end(),
                                   [](const std::string& text) { return text.rfind("--", 0) == 0; });
    if (flag == unexpected.end()) return "unexpected argument '" + unexpected.front() + "'";
    const std::string name = flag->substr(0, flag->find('='));
    const char other_spelling = name.find('-', 2) == std::string::npos ? '-' : '_';
    std::vector<std::string> known;
    for (const CLI::Option* option : app_.get_options()) {
      for (const std::string& flag_name : option->get_lnames()) {
        if (flag_name.find(other_spelling) == std::string::npos) known.push_back("--" + flag_name);
      }
    }
    const std::string unknown = "unknown flag " + name;
    const std::string hint = hint_for_flag(unknown, known);
    return hint.empty() ? unknown : unknown + "; " + hint;
  }

  static ParsedSettings usage_error(const std::string& what) {
    std::cerr << "ranklog-train: " << what << (what.back() == '?' ? " See" : "; see")
              << " 'ranklog-train --help'\n";
    return {std::nullopt, kExitUsage};
  }

  CLI::App app_;
  Settings settings_;
  Settings defaults_;  // as they are without flags
  std::string strategy_;
  double timeout_seconds_ = 300;
};

}  // namespace

ParsedSettings parse_settings(int argc, const char* const* argv, const EnvLookup& environment) {
  return SettingsParser(environment).parse(argc, argv);
}

}  // namespace ranklog
