#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "ranklog/cli/command.hpp"
#include "ranklog/cli/text.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/suggest.hpp"

namespace ranklog::cli {
namespace {

constexpr const char* kFooter =
    "PATHS are log folders, project or experiment folders, or rank files, live or finished; without any,\n"
    "RANKLOG_DIR, WANDB_DIR/ranklog or ./ranklog is read. Reading changes no log and holds up no training.\n"
    "\n"
    "Exit status: 0 all well; 1 not found, or something could not be read; 2 wrong usage;\n"
    "5 damaged files, and nothing else wrong (the rest was read); 128 + n stopped by signal n.\n";

struct Program {
  CLI::App app{"Look into the logs of distributed training: raw, per rank, with no server.", "ranklog"};
  std::vector<std::pair<CLI::App*, std::function<int()>>> actions;
};

std::unique_ptr<Program> make_program() {
  auto program = std::make_unique<Program>();
  CLI::App& app = program->app;
  app.set_version_flag("--version", std::string("ranklog ") + RANKLOG_VERSION);
  app.get_formatter()->column_width(34);
  app.footer(kFooter);
  app.require_subcommand(1);
  for (const Command& command : all_commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    program->actions.emplace_back(sub, command.set_up(*sub));
  }
  return program;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  names.reserve(all_commands().size());
  for (const Command& command : all_commands()) names.push_back(command.name);
  return names;
}

bool is_command(const std::string& word) {
  const auto names = command_names();
  return std::find(names.begin(), names.end(), word) != names.end();
}

std::string hint_for_command(std::string_view typed) {
  const auto names = command_names();
  const auto meant = nearest(typed, names);
  return meant.empty() ? "the commands are " + join_alternatives(names)
                       : "did you mean " + join_alternatives(meant) + "?";
}

// "--jsn" for which the command has "--json".
std::string hint_for_option(const CLI::App& app, std::string_view message) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return hint_for_flag(message, known);
}

// One line for a person; where JSON was asked for, also a document for the program that waits for one.
int fail(int status, const std::string& message, bool json) {
  print_error(message);
  if (json) {
    const nlohmann::ordered_json document{{"exit_status", status}, {"error", message}};
    std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }
  return status;
}

bool asks_for_json(int argc, const char* const* argv) {
  return std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
}

Error usage_error(const CLI::App& app, const std::string& message, const std::string& hint) {
  const std::string name = app.get_parent() == nullptr ? "ranklog" : "ranklog " + app.get_name();
  return {ErrorCode::kUsage, message, hint.empty() ? "see " + name + " --help" : hint};
}

const CLI::App& chosen(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? app : *subcommands.front();
}

int parse_and_run(Program& program, int argc, const char* const* argv) {
  CLI::App& app = program.app;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ExtrasError& error) {
    const CLI::App& where = chosen(app);
    throw usage_error(where, error.what(), hint_for_option(where, error.what()));
  } catch (const CLI::ParseError& error) {
    throw usage_error(chosen(app), error.what(), {});
  }
  for (const auto& [sub, action] : program.actions) {
    if (sub->parsed()) return action();
  }
  return kExitUsage;
}

}  // namespace

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands{ls_command(),      show_command(),  query_command(),
                                             plot_command(),    check_command(), compact_command(),
                                             snapshot_command()};
  return commands;
}

void print_error(std::string_view message) {
  std::cout.flush();
  std::cerr << "ranklog: " << printable(message) << '\n';
}

int run(int argc, const char* const* argv) {
  const bool json = asks_for_json(argc, argv);
  try {
    const auto program = make_program();
    if (argc < 2) {
      std::cerr << program->app.help();
      return kExitUsage;
    }
    const std::string first = argv[1];
    if (!first.empty() && first.front() != '-' && !is_command(first)) {
      throw usage_error(program->app, "there is no command '" + first + "'", hint_for_command(first));
    }
    const int status = parse_and_run(*program, argc, argv);
    std::cout.flush();
    if (!std::cout) throw Error(ErrorCode::kIo, "cannot write the output");
    return status;
  } catch (const Error& error) {
    return fail(exit_status(error.code()), error.what(), json);
  } catch (const std::exception& error) {
    return fail(kExitFailed, std::string("unexpected: ") + error.what(), json);
  }
}

}  // namespace ranklog::cli
