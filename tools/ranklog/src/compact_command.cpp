#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "ranklog/cli/command.hpp"
#include "ranklog/cli/format.hpp"
#include "ranklog/cli/inputs.hpp"
#include "ranklog/cli/text.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/rank_database.hpp"

namespace ranklog::cli {
namespace {

namespace fs = std::filesystem;

// What compacting has done so far.
struct Totals {
  std::size_t files = 0, running = 0;
  std::uint64_t bytes_before = 0, bytes_after = 0;
  Compaction chunks;
  int status = kExitOk;
};

void compact(const fs::path& path, Totals& totals) {
  std::error_code ignored;
  try {
    const auto before = fs::file_size(path);
    const Compaction result = compact_rank_file(path);
    ++totals.files;
    totals.bytes_before += before;
    totals.bytes_after += fs::file_size(path, ignored);
    totals.chunks.chunks_before += result.chunks_before;
    totals.chunks.chunks_after += result.chunks_after;
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    totals.status = worse(totals.status, known != nullptr ? exit_status(known->code()) : kExitFailed);
    print_error(printable(error.what()));
  }
}

int compact_all(const Inputs& inputs) {
  const Loaded loaded = load(inputs);
  Totals totals;
  for (const Experiment& experiment : loaded.experiments) {
    for (const Attempt& attempt : experiment.attempts) {
      for (const RankSegment& segment : attempt.segments) {
        if (segment.info.end_time_ns) {
          compact(segment.path, totals);
        } else {
          ++totals.running;
        }
      }
    }
  }
  std::cout << totals.files << (totals.files == 1 ? " file: " : " files: ") << totals.chunks.chunks_before
            << " chunks are now " << totals.chunks.chunks_after << ", " << format_size(totals.bytes_before)
            << " are now " << format_size(totals.bytes_after) << '\n';
  if (totals.running > 0) {
    std::cout << totals.running << " left alone, because not ended: being written, or left by a crash\n";
  }
  std::cout.flush();
  print_problems(loaded.problems);
  return worse(totals.status, exit_status_of(loaded.problems));
}

}  // namespace

Command compact_command() {
  return {
      "compact", "Merge small chunks of finished files, and give the space back", [](CLI::App& app) {
        auto inputs = std::make_shared<Inputs>();
        inputs->add_experiments(app);
        inputs->add_paths(app);
        app.footer(
            "Files merge their own chunks when they finish; this is for those that had no time to. No row\n"
            "changes, and a file that has not ended is left alone. Killed at any moment, it leaves each "
            "file\n"
            "as it was or compacted.\n"
            "\n"
            "Example:\n"
            "  ranklog compact /scratch/me/ranklog/my-project\n");
        return [inputs] { return compact_all(*inputs); };
      }};
}

}  // namespace ranklog::cli
