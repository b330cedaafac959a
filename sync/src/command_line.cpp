#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/suggest.hpp"

namespace ranklog::sync {
namespace {

constexpr const char* kDescription =
    "Decides how the ranks of logged experiments become W&B runs, and uploads them.\n"
    "It can be killed and run again at any moment; no row or artifact goes up twice.\n";

constexpr const char* kFooter = R"(
Strategies
  main   one run an experiment, from rank 0
  node   one run a node, from its local rank 0, named rank-<rank>
  all    one run a rank, named rank-<rank>
  Default: what the experiment recorded when it was trained, else main.

Examples
  wandb-sync plan ranklog/                 what would go up, without a server
  wandb-sync ranklog/ --strategy node      upload; run it again to send what is new
  wandb-sync ranklog/ -e my-team -p llm    to another entity and project

Server and key are found as W&B's own tools find them: WANDB_API_KEY, else ~/.netrc (NETRC); WANDB_BASE_URL,
else the settings file, else https://api.wandb.ai. WANDB_ENTITY, WANDB_SILENT and WANDB_QUIET are honoured.

Exit status
  0    everything is up (or was, or there is nothing to upload yet)
  1    something failed or was skipped; also: some files are damaged and the others are up ("partial")
  2    wrong flags or variables, or no logs where they were looked for
  4    no API key, or the server does not allow it
  5    local data is damaged, nothing else is wrong, and nothing is up
  75   only passing faults (network, rate limits): run it again
  130  stopped by Ctrl-C (143: SIGTERM); what the server has confirmed is recorded
  Of several, the first of: signal, 2, 4, 1, 5, 75.
)";

struct RawOptions {
  std::string strategy;
  std::vector<std::string> paths;
  int main_rank = 0;
  bool dry_run = false;
  bool no_skip = false;
  bool skip = false;
};

void add_options(CLI::App& app, Command& command, RawOptions& raw) {
  app.add_option("PATHS", raw.paths,
                 "Log folders, experiment folders or rank files (default: RANKLOG_DIR, WANDB_DIR/ranklog, "
                 "else ./ranklog)");
  app.add_option("--strategy", raw.strategy, "main, node or all");
  app.add_option("-e,--entity", command.entity, "Upload to this entity");
  app.add_option("-p,--project", command.project, "Upload to this project");
  app.add_option("--id", command.run_id, "Run id, where the plan has one run");
  app.add_option("--group", command.group, "Group of the runs");
  app.add_option("--job-type", command.job_type, "Job type of the runs");
  app.add_option("--main-rank", raw.main_rank, "The rank that strategy main takes")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--dry-run", raw.dry_run, "Show the plan and stop (like: wandb-sync plan)");
  app.add_flag("--yes", command.yes, "Do not ask when no path was given");
  app.add_flag("--skip-synced", raw.skip,
               "Skip runs that are up completely without asking the server (default)");
  app.add_flag("--no-skip-synced", raw.no_skip, "Ask the server about them, too");
  app.add_flag("--new-generation", command.new_generation,
               "Runs that no longer begin with what was uploaded go up beside it, as <id>-g2");
  app.add_option("-n", command.parallel, "Runs uploaded at the same time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--timeout", command.timeout_s, "Seconds that requests may keep failing before giving up")
      ->check(CLI::Range(1.0, 1e9))
      ->capture_default_str();
  app.add_option("--stale", command.stale_s, "Seconds of silence after which a rank counts as crashed")
      ->check(CLI::Range(1.0, 1e9))
      ->capture_default_str();
  app.add_option("--state-dir", command.state_dir,
                 "Keep the upload state here, where the logs are read-only");
  app.add_flag("--json", command.json, "Plan or report as JSON on standard output");
  app.add_flag("-v,--verbose", command.verbose, "Also list runs that were up to date");
}

std::string flag_hint(const CLI::App& app, const std::string& message) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return hint_for_flag(message, known);
}

// A word that is no path may be a command with a typing slip.
void check_paths(const Command& command, const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(sub->get_name());
  }
  for (const std::filesystem::path& path : command.paths) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) continue;
    const auto meant = nearest(path.string(), words);
    throw Error(ErrorCode::kUsage, "there is no file or folder '" + path.string() + "'",
                meant.empty() || !command.paths_given
                    ? "name the folder that training logged into"
                    : "did you mean the command " + join_alternatives(meant) + "?");
  }
}

Command settle(Command command, const RawOptions& raw, const CLI::App& app, const Environment& environment) {
  if (!raw.strategy.empty()) command.strategy = parse_strategy(raw.strategy);
  if (app.count("--main-rank") > 0) command.main_rank = raw.main_rank;
  if (raw.skip && raw.no_skip) {
    throw Error(ErrorCode::kUsage, "--skip-synced and --no-skip-synced exclude each other");
  }
  command.skip_synced = !raw.no_skip;
  command.plan_only = command.plan_only || raw.dry_run;
  command.paths_given = !raw.paths.empty();
  command.paths.assign(raw.paths.begin(), raw.paths.end());
  if (!command.paths_given) command.paths.push_back(default_log_folder(environment));
  check_paths(command, app);
  return command;
}

}  // namespace

std::variant<Command, int> parse_command_line(int argc, const char* const* argv,
                                              const Environment& environment) {
  CLI::App app{kDescription, "wandb-sync"};
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("wandb-sync ") + RANKLOG_VERSION);
  Command command;
  RawOptions raw;
  add_options(app, command, raw);
  app.require_subcommand(0, 1);
  constexpr const char* kSameFlags = "Takes the paths and flags that wandb-sync --help lists.";
  app.add_subcommand("plan", "Show which runs would be uploaded, and what that takes")
      ->fallthrough()
      ->footer(kSameFlags)
      ->callback([&] { command.plan_only = true; });
  app.add_subcommand("push", "Upload (the default)")->fallthrough()->footer(kSameFlags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success, std::cout, std::cerr);
  } catch (const CLI::ExtrasError& error) {
    const std::string hint = flag_hint(app, error.what());
    throw Error(ErrorCode::kUsage, error.what(), hint.empty() ? "see wandb-sync --help" : hint);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kUsage, error.what(), "see wandb-sync --help");
  }
  return settle(std::move(command), raw, app, environment);
}

}  // namespace ranklog::sync
