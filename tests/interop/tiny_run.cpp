// The run of official_run.py, logged with ranklog: tiny_run <log folder> <folder for the artifact's files>.

#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>

#include "ranklog/writer/writer.hpp"

namespace {

constexpr int kRows = 5;

ranklog::Writer open_run(const std::filesystem::path& log_dir) {
  ranklog::Options options;
  options.console = false;
  options.system_metrics_interval = std::chrono::milliseconds(0);
  options.log_dir = log_dir;
  options.project = "interop";
  options.experiment = "tiny";
  options.group = "tiny";
  options.job_type = "train";
  options.name = "rank-1";
  options.notes = "noted";
  options.tags = {"a", "b"};
  options.rank = 0;
  options.local_rank = 0;
  options.world_size = 1;
  options.local_world_size = 1;
  return ranklog::Writer::open(options);
}

void log_rows(ranklog::Writer& log) {
  for (int step = 0; step < kRows; ++step) {
    log.log_json(step, R"({"dist": {"_type": "histogram", "values": [1, )" + std::to_string(step) +
                           R"(, 2], "bins": [-1.0, 0.0, 0.5, 1.0]}, "nested": {"a": )" +
                           std::to_string(step) + "}}");
    const double odd = step == 1   ? std::numeric_limits<double>::quiet_NaN()
                       : step == 2 ? std::numeric_limits<double>::infinity()
                                   : step;
    log.log(step, {{"loss", 1.0 / (step + 1)}, {"big", (std::int64_t{1} << 53) + 1}, {"odd", odd}});
  }
}

void log_artifact(ranklog::Writer& log, const std::filesystem::path& folder) {
  const std::filesystem::path first = folder / "a.txt";
  const std::filesystem::path second = folder / "b.bin";
  std::ofstream(first) << "hello\n";
  std::ofstream bytes(second, std::ios::binary);
  for (int byte = 0; byte < 256; ++byte) bytes.put(static_cast<char>(byte));
  bytes.close();
  log.artifact("tiny-model", "model")
      .add_file(first)
      .add_file(second, "dir/b.bin")
      .alias("best")
      .description("two files")
      .metadata_json(R"({"step": 4})")
      .step(kRows)
      .commit();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return ranklog::kExitUsage;
  try {
    auto log = open_run(argv[1]);
    log.config_json(R"({"learning_rate": 0.1, "layers": [8, 16], "nested": {"a": 1}})");
    log_rows(log);
    log_artifact(log, argv[2]);
    return log.finish().durable ? ranklog::kExitOk : ranklog::kExitFailed;
  } catch (const ranklog::Error& error) {
    std::cerr << error.what() << "\n";
    return ranklog::exit_status(error.code());
  }
}
