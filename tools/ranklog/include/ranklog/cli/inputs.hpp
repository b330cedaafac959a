#pragma once
// From what stands on the command line to experiments: the same words mean the same in every command.

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ranklog/cli/terminal.hpp"
#include "ranklog/schema/experiment.hpp"
#include "ranklog/sql/catalog.hpp"

namespace CLI {
class App;
}

namespace ranklog::cli {

// Arguments that many commands share.
struct Inputs {
  std::vector<std::filesystem::path> paths;  // empty: default_log_folder()
  std::vector<std::string> experiments;      // ids or globs; empty: all

  void add_paths(CLI::App& app);        // [PATHS...]
  void add_experiments(CLI::App& app);  // -e, --experiment
};

// --color auto|always|never
void add_color(CLI::App& app, ColorMode& mode);

struct Loaded {
  std::vector<Experiment> experiments;
  std::vector<ScanProblem> problems;
};

// Finds the experiments that were asked for. Throws Error (kNotFound) that says what to do next if there is
// no log at all, or none with such an id; what could not be read is then on stderr already.
[[nodiscard]] Loaded load(const Inputs& inputs);

// Names on stderr what could not be read, a line each.
void print_problems(std::span<const ScanProblem> problems);
void print_problems(std::span<const sql::ReadProblem> problems);

// Runs `work`, which reads through the catalog, and then names on stderr what could not be read: also if it
// throws, for a mistake must not hide what else is wrong. Gives the exit status that follows.
[[nodiscard]] int report_problems(std::span<const ScanProblem> scan_problems, const sql::Catalog& catalog,
                                  const std::function<void()>& work);

// 0 if nothing is wrong, 5 if only damage is, else 1.
[[nodiscard]] int exit_status_of(std::span<const ScanProblem> problems);
[[nodiscard]] int exit_status_of(std::span<const sql::ReadProblem> problems);
// The one of two that the program ends with: 1 over 5 over 0.
[[nodiscard]] int worse(int a, int b);

}  // namespace ranklog::cli
