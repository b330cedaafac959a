#include "ranklog/cli/inputs.hpp"

#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

#include "ranklog/cli/text.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/suggest.hpp"

namespace ranklog::cli {
namespace {

std::optional<std::string> variable(std::string_view name) {
  const char* text = std::getenv(std::string(name).c_str());
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

Error no_logs(const std::vector<std::filesystem::path>& searched) {
  std::string places;
  for (const auto& path : searched) places += (places.empty() ? "" : ", ") + path.string();
  return {
      ErrorCode::kNotFound, "there are no logs in " + places,
      "ranklog-train and programs that use ranklog::Writer write them to --log-dir or RANKLOG_DIR (./ranklog "
      "by default); name the folder, as in: ranklog ls FOLDER"};
}

bool matches(const std::vector<std::string>& patterns, const std::string& id) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return pattern == id || fnmatch(pattern.c_str(), id.c_str(), 0) == 0;
  });
}

void keep_wanted(std::vector<Experiment>& experiments, const std::vector<std::string>& patterns) {
  std::vector<std::string> ids;
  ids.reserve(experiments.size());
  for (const Experiment& experiment : experiments) ids.push_back(experiment.id);
  for (const std::string& pattern : patterns) {
    if (std::any_of(ids.begin(), ids.end(), [&](const auto& id) { return matches({pattern}, id); })) continue;
    const auto meant = nearest(pattern, ids);
    throw Error(
        ErrorCode::kNotFound, "no experiment here is called '" + pattern + "'",
        meant.empty() ? "ranklog ls shows what there is" : "did you mean " + join_alternatives(meant) + "?");
  }
  std::erase_if(experiments, [&](const Experiment& experiment) { return !matches(patterns, experiment.id); });
}

}  // namespace

void Inputs::add_paths(CLI::App& app) {
  app.add_option("PATHS", paths,
                 "log folders, project or experiment folders, or rank files (default: RANKLOG_DIR, "
                 "WANDB_DIR/ranklog, else ./ranklog)");
}

void Inputs::add_experiments(CLI::App& app) {
  app.add_option("-e,--experiment", experiments, "only experiments with this id; * and ? are wildcards")
      ->allow_extra_args(false)
      ->type_name("ID");
}

void add_color(CLI::App& app, ColorMode& mode) {
  static const std::map<std::string, ColorMode> modes{
      {"auto", ColorMode::kAuto}, {"always", ColorMode::kAlways}, {"never", ColorMode::kNever}};
  // Not CLI11's own way for an enum: its messages would print the values as bytes.
  app.add_option_function<std::string>(
         "--color",
         [&mode](const std::string& word) {
           const auto found = modes.find(word);
           if (found == modes.end()) throw CLI::ValidationError("--color", "use auto, always or never");
           mode = found->second;
         },
         "auto (default: on a terminal, unless NO_COLOR is set), always or never")
      ->type_name("WHEN");
}

Loaded load(const Inputs& inputs) {
  std::vector<std::filesystem::path> paths = inputs.paths;
  if (paths.empty()) {
    paths.push_back(default_log_folder(variable));
    std::error_code ignored;
    if (!std::filesystem::exists(paths.front(), ignored)) throw no_logs(paths);
  }
  ScanResult found = scan(paths);
  if (found.experiments.empty() && found.problems.empty()) throw no_logs(paths);
  try {
    if (!inputs.experiments.empty()) keep_wanted(found.experiments, inputs.experiments);
  } catch (const Error&) {
    print_problems(found.problems);
    throw;
  }
  return {std::move(found.experiments), std::move(found.problems)};
}

void print_problems(std::span<const ScanProblem> problems) {
  for (const ScanProblem& problem : problems) {
    const std::string path = problem.path.string();
    const bool named = problem.message.find(path) != std::string::npos;
    std::cerr << "ranklog: not read: " << printable(named ? problem.message : path + ": " + problem.message)
              << '\n';
  }
}

void print_problems(std::span<const sql::ReadProblem> problems) {
  for (const sql::ReadProblem& problem : problems) {
    std::cerr << "ranklog: left out: " << printable(problem.message) << '\n';
  }
}

int report_problems(std::span<const ScanProblem> scan_problems, const sql::Catalog& catalog,
                    const std::function<void()>& work) {
  const auto print = [&] {
    std::cout.flush();
    print_problems(scan_problems);
    print_problems(catalog.problems());
  };
  try {
    work();
  } catch (...) {
    print();
    throw;
  }
  print();
  return worse(exit_status_of(scan_problems), exit_status_of(catalog.problems()));
}

int exit_status_of(std::span<const ScanProblem> problems) {
  int status = kExitOk;
  for (const ScanProblem& problem : problems) status = worse(status, exit_status(problem.code));
  return status;
}

int exit_status_of(std::span<const sql::ReadProblem> problems) {
  int status = kExitOk;
  for (const sql::ReadProblem& problem : problems) status = worse(status, exit_status(problem.code));
  return status;
}

int worse(int a, int b) {
  if (a == kExitFailed || b == kExitFailed) return kExitFailed;
  return std::max(a, b);
}

}  // namespace ranklog::cli
