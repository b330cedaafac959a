#pragma once
// Experiments on disk for tests: nodes of ranks, each with its own file, made as a writer makes them.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "ranklog/schema/experiment.hpp"
#include "ranklog/schema/identity.hpp"
#include "support/rank_file_builder.hpp"

namespace ranklog::sync::test {

using ranklog::test::kStartTimeNs;
using ranklog::test::RankFileBuilder;

struct Job {
  std::string project = "distributed-wandb";
  std::string experiment = "exp-7";
  int nodes = 2;
  int ranks_per_node = 4;
  int attempt = 0;  // of which launch; the file's number too
  std::int64_t start_time_ns = kStartTimeNs;
  std::function<void(Identity&)> adjust = [](Identity&) {};

  [[nodiscard]] Identity identity(int rank) const;
  // <logs>/<project>/<experiment>
  [[nodiscard]] std::filesystem::path folder(const std::filesystem::path& logs) const;
  // An open file for this rank.
  [[nodiscard]] RankFileBuilder open(const std::filesystem::path& logs, int rank) const;
  // All ranks with `steps` rows each: loss = rank + step / 1024. Finished.
  void write(const std::filesystem::path& logs, int steps) const;
};

// Records an artifact whose files lie in the experiment's folder, with their true digests.
void add_artifact(RankFileBuilder& file, const std::string& name, const std::string& path_in_folder,
                  std::int64_t step, const std::string& content);

// The one experiment under `logs`.
[[nodiscard]] Experiment scan_one(const std::filesystem::path& logs);

}  // namespace ranklog::sync::test
