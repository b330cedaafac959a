#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "ranklog/cli/captured_files_check.hpp"
#include "ranklog/cli/command.hpp"
#include "ranklog/cli/experiment_copy.hpp"
#include "ranklog/cli/format.hpp"
#include "ranklog/cli/inputs.hpp"
#include "ranklog/cli/text.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/rank_file.hpp"

namespace ranklog::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Request {
  Inputs inputs;
  bool as_json = false;
  bool skip_files = false;
  std::optional<std::filesystem::path> repair_to;
};

struct Report {
  std::string path;
  std::uint64_t rows_expected = 0, rows_read = 0;
  std::vector<std::string> damage;
  int status = kExitOk;
};

// Every chunk and record, read and verified against its checksum.
std::uint64_t read_rows(const RankFile& file, Stream stream) {
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < file.row_groups(stream).size(); ++i) {
    try {
      rows += file.load(i, stream).rows();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDamaged) throw;  // the file lists the damage itself
    }
  }
  return rows;
}

void read_all(const RankFile& file, Report& report) {
  report.rows_expected = file.info().rows;
  report.rows_read = read_rows(file, Stream::kHistory);
  (void)read_rows(file, Stream::kSystem);
  (void)read_rows(file, Stream::kConsole);
  (void)file.events();
  (void)file.artifacts();
  (void)file.files();
  file.check_pages();
  for (const Damage& damage : file.damage()) report.damage.push_back(damage.place + ": " + damage.reason);
  if (report.damage.empty() && report.rows_read != report.rows_expected) {
    report.damage.push_back("there are " + std::to_string(report.rows_read) + " rows, but should be " +
                            std::to_string(report.rows_expected));
  }
}

Report check(const std::filesystem::path& path, CapturedFilesCheck& captured) {
  Report report;
  report.path = path.string();
  try {
    const RankFile file = RankFile::open(path);
    captured.add(file, path.parent_path());
    read_all(file, report);
    if (!report.damage.empty()) report.status = kExitDamaged;
  } catch (const Error& error) {
    report.damage.emplace_back(error.what());
    report.status = exit_status(error.code());
  }
  return report;
}

void print(const Report& report) {
  if (report.status == kExitOk) return;
  std::cout << printable(report.path) << ": " << report.rows_read << " of " << report.rows_expected
            << " rows can be read\n";
  for (const std::string& damage : report.damage) std::cout << "  " << printable(damage) << '\n';
}

// An experiment with damaged files goes to `output` as far as it can be read.
// One that cannot be copied does not keep the others from it.
int repair(const Experiment& experiment, const std::filesystem::path& output) try {
  const ExperimentCopy copy = copy_experiment(experiment, output);
  std::cout << "salvaged to " << printable(copy.folder.string()) << ": "
            << plural(copy.rank_files, "rank file") << ", " << plural(copy.rows, "row") << "; "
            << plural(copy.rows_missing, "row") << " lost" << std::endl;
  return report_problems(copy);
} catch (const Error& error) {
  print_error(error.what());
  return exit_status(error.code());
}

void print(const CapturedReport& report) {
  if (report.damage.empty()) return;
  std::cout << printable(report.folder) << ": " << report.files - report.damage.size() << " of "
            << plural(report.files, "captured file") << " can be read\n";
  for (const std::string& damage : report.damage) std::cout << "  " << printable(damage) << '\n';
}

// No damage, as they may lie elsewhere; but nobody can say of them that they are whole.
void print_missing_ranks(const Experiment& experiment) {
  const std::size_t missing = experiment.missing_ranks().size();
  if (missing == 0) return;
  std::cout << printable(experiment.project + "/" + experiment.id) << ": no file of "
            << plural(missing, "rank") << " of " << experiment.world_size()
            << "; what only they recorded was not checked\n";
}

Json json_of(const Report& report) {
  return {{"path", report.path},
          {"rows", report.rows_expected},
          {"readable_rows", report.rows_read},
          {"damage", report.damage}};
}

Json json_of(const CapturedReport& report) {
  return {{"path", report.folder}, {"files", report.files}, {"damage", report.damage}};
}

class Check {
 public:
  explicit Check(const Request& request) : request_(request) {}

  void run(const Experiment& experiment, const std::vector<ScanProblem>& unreadable) {
    const std::uint64_t damaged_before = damaged_;
    CapturedFilesCheck captured;
    for (const Attempt& attempt : experiment.attempts) {
      for (const RankSegment& segment : attempt.segments) {
        const Report report = check(segment.path, captured);
        ++files_;
        damaged_ += report.status == kExitOk ? 0 : 1;
        tell("files", report, report.status);
      }
    }
    const bool rank_files_damaged =
        damaged_ > damaged_before || std::ranges::any_of(unreadable, [&](const ScanProblem& problem) {
          return problem.path.parent_path() == experiment.folder;
        });
    if (!request_.as_json) print_missing_ranks(experiment);
    if (!request_.skip_files) {
      const CapturedReport report = captured.run();
      captured_files_ += report.files;
      captured_damaged_ += report.damage.size();
      tell("captured", report, report.damage.empty() ? kExitOk : kExitDamaged);
    }
    if (request_.repair_to && rank_files_damaged) {
      ++repaired_;
      status_ = worse(status_, repair(experiment, *request_.repair_to));
    }
  }

  int finish(const Loaded& loaded) {
    if (request_.as_json) {
      for (const ScanProblem& problem : loaded.problems) {
        document_["problems"].push_back({{"path", problem.path.string()}, {"message", problem.message}});
      }
      std::cout << document_.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    } else {
      std::cout << plural(files_, "file") << " checked, " << damaged_ << " damaged";
      if (!loaded.problems.empty()) std::cout << "; not read: " << plural(loaded.problems.size(), "file");
      if (captured_files_ > 0) {
        std::cout << "; " << plural(captured_files_, "captured file") << ", " << captured_damaged_
                  << " damaged";
      }
      std::cout << '\n';
      if (request_.repair_to && repaired_ == 0) {
        std::cout << (loaded.problems.empty() ? "nothing is damaged: nothing was copied\n"
                                              : "nothing could be salvaged: nothing was copied\n");
      }
    }
    std::cout.flush();
    print_problems(loaded.problems);
    return worse(status_, exit_status_of(loaded.problems));
  }

 private:
  template <class Part>
  void tell(const char* list, const Part& report, int status) {
    status_ = worse(status_, status);
    if (request_.as_json) {
      document_[list].push_back(json_of(report));
    } else {
      print(report);
    }
  }

  const Request& request_;
  Json document_{{"files", Json::array()}, {"captured", Json::array()}, {"problems", Json::array()}};
  std::uint64_t files_ = 0, damaged_ = 0, captured_files_ = 0, captured_damaged_ = 0;
  int repaired_ = 0;  // experiments
  int status_ = kExitOk;
};

int check_all(const Request& request) {
  const Loaded loaded = load(request.inputs);
  Check check(request);
  for (const Experiment& experiment : loaded.experiments) check.run(experiment, loaded.problems);
  return check.finish(loaded);
}

}  // namespace

Command check_command() {
  return {
      "check", "Verify every checksum, and name what is damaged", [](CLI::App& app) {
        auto request = std::make_shared<Request>();
        CLI::Option* json = app.add_flag("--json", request->as_json, "one JSON document");
        app.add_option("--repair", request->repair_to,
                       "copy each experiment with damaged files to this log folder, as far as it can be "
                       "read")
            ->type_name("FOLDER")
            ->excludes(json);
        app.add_flag("--no-files", request->skip_files,
                     "only the rank files, not what artifacts and the run captured (checkpoints, media)");
        request->inputs.add_experiments(app);
        request->inputs.add_paths(app);
        app.footer(
            "Reads all of every file, live ones too, and changes nothing. Damage stays local: but for "
            "the few\n"
            "pages that lead to all others (README, Limitations) every other row can be read, and the other "
            "commands\n"
            "do. --repair leaves the damaged files as they are.\n"
            "\n"
            "Example:\n"
            "  ranklog check /scratch/me/ranklog/my-project\n");
        return [request] { return check_all(*request); };
      }};
}

}  // namespace ranklog::cli
