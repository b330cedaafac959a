#include "experiments.hpp"

#include <stdexcept>
#include <vector>

#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/naming.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::sync::test {

namespace fs = std::filesystem;

Identity Job::identity(int rank) const {
  Identity out;
  out.project = project;
  out.experiment = experiment;
  out.rank = rank;
  out.local_rank = rank % ranks_per_node;
  out.world_size = nodes * ranks_per_node;
  out.local_world_size = ranks_per_node;
  out.node = rank / ranks_per_node;
  out.launch_token = "launch-" + std::to_string(attempt);
  out.host = "host-" + std::to_string(out.node);
  out.pid = 1000 + rank;
  adjust(out);
  return out;
}

fs::path Job::folder(const fs::path& logs) const {
  return experiment_folder(logs, project, experiment);
}

RankFileBuilder Job::open(const fs::path& logs, int rank) const {
  return {folder(logs) / rank_file_name(rank, attempt), identity(rank), start_time_ns};
}

void Job::write(const fs::path& logs, int steps) const {
  for (int rank = 0; rank < nodes * ranks_per_node; ++rank) {
    RankFileBuilder file = open(logs, rank);
    file.operation(ConfigEntry{"lr", "0.001"});
    for (int step = 0; step < steps; ++step) file.row(step, {{"loss", rank + step / 1024.0}});
    file.finish();
  }
}

void add_artifact(RankFileBuilder& file, const std::string& name, const std::string& path_in_folder,
                  std::int64_t step, const std::string& content) {
  const fs::path path = file.path().parent_path() / path_in_folder;
  fs::create_directories(path.parent_path());
  ranklog::test::write_file(path, content);
  Artifact artifact;
  artifact.name = name;
  artifact.type = "model";
  artifact.step = step;
  artifact.metadata_json = "{}";
  artifact.aliases = {"step-" + std::to_string(step)};
  artifact.files = {{"model.pt", path_in_folder, content.size(), md5_hex(content), sha256_hex(content)}};
  file.operation(artifact);
}

Experiment scan_one(const fs::path& logs) {
  const std::vector<fs::path> inputs = {logs};
  ScanResult found = scan(inputs);
  if (found.experiments.size() != 1) throw std::runtime_error("not one experiment");
  return std::move(found.experiments.front());
}

}  // namespace ranklog::sync::test
