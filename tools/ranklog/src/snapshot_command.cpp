#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "ranklog/cli/command.hpp"
#include "ranklog/cli/experiment_copy.hpp"
#include "ranklog/cli/format.hpp"
#include "ranklog/cli/inputs.hpp"
#include "ranklog/cli/text.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog::cli {
namespace {

struct Snapshot {
  Inputs inputs;
  std::filesystem::path output;
};

int take_snapshot(const Snapshot& request) {
  const Loaded loaded = load(request.inputs);
  int status = exit_status_of(loaded.problems);
  for (const Experiment& experiment : loaded.experiments) {
    const ExperimentCopy copy = copy_experiment(experiment, request.output);
    std::cout << printable(copy.folder.string()) << ": " << plural(copy.rank_files, "rank file") << ", "
              << plural(copy.rows, "row") << ", " << plural(copy.captured_files, "captured file")
              << std::endl;
    status = worse(status, report_problems(copy));
  }
  print_problems(loaded.problems);
  return status;
}

}  // namespace

Command snapshot_command() {
  return {
      "snapshot", "Copy experiments, live ones too, so that the copy is whole", [](CLI::App& app) {
        auto request = std::make_shared<Snapshot>();
        app.add_option("-o,--output", request->output, "log folder for the copies (made if needed)")
            ->required()
            ->type_name("FOLDER");
        request->inputs.add_experiments(app);
        request->inputs.add_paths(app);
        app.footer(
            "A folder copied with cp or rsync while it is written may be torn; this copy never is: every\n"
            "rank file as it was at a moment, complete in itself, with the files that artifacts and media\n"
            "point to. Training is not held up. Uploads are not recorded in the copy: upload one of the "
            "two.\n"
            "\n"
            "Example:\n"
            "  ranklog snapshot -e my-run -o /transfer/ranklog /scratch/me/ranklog\n");
        return [request] { return take_snapshot(*request); };
      }};
}

}  // namespace ranklog::cli
