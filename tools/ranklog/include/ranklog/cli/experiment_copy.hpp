#pragma once
// An experiment's folder, copied so that the copy is whole: of a live one as it is at a moment, of a damaged
// one what can be read.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ranklog/schema/experiment.hpp"

namespace ranklog::cli {

struct ExperimentCopy {
  std::filesystem::path folder;
  std::uint64_t rank_files = 0;
  std::uint64_t rows = 0;
  std::uint64_t rows_missing = 0;     // that the logs should have and could not be read
  std::uint64_t captured_files = 0;   // of artifacts and media
  std::vector<std::string> problems;  // a line each: damage that was left out, files that are not there
};

// Into <log_dir>/<project>/<experiment>, which must have none of these files. Every rank file is complete by
// itself; what artifacts and media values point to comes along; the state of uploads does not. Throws Error:
// kBusy (there is something already), kIo.
[[nodiscard]] ExperimentCopy copy_experiment(const Experiment& experiment,
                                             const std::filesystem::path& log_dir);

}  // namespace ranklog::cli
