#pragma once
// An experiment's folder, copied so that the copy is whole: of a live one as it is at a moment, of a damaged
// one what can be read.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ranklog/schema/experiment.hpp"

namespace ranklog::cli {

// What is not in the copy: damage, a file that could not be copied, what only a later version knows.
struct CopyProblem {
  ErrorCode code;
  std::string message;  // a line
};

struct ExperimentCopy {
  std::filesystem::path folder;
  std::uint64_t rank_files = 0;
  std::uint64_t rows = 0;
  std::uint64_t rows_missing = 0;    // that the logs should have and could not be read
  std::uint64_t captured_files = 0;  // of artifacts and media
  std::vector<CopyProblem> problems;
};

// Into <log_dir>/<project>/<experiment>, which must have none of these files. Every rank file is complete by
// itself; what artifacts and media values point to comes along, and what of it cannot be read is a problem;
// the state of uploads does not. The folder appears when all of it is there; until then, and after a crash,
// it has a name that scan() passes over. Throws Error: kBusy (there is something already), kIo.
[[nodiscard]] ExperimentCopy copy_experiment(const Experiment& experiment,
                                             const std::filesystem::path& log_dir);

// Names the problems on stderr, and gives the exit status that follows.
[[nodiscard]] int report_problems(const ExperimentCopy& copy);

}  // namespace ranklog::cli
