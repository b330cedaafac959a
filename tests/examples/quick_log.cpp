#include <ranklog/writer/writer.hpp>

int main() {
  ranklog::Options options;
  options.project = "distributed-wandb";
  options.group = "my-experiment";
  auto log = ranklog::Writer::open(options);  // rank, local rank, node from torchrun, Slurm or MPI
  log.config({{"learning_rate", 1e-3}});
  for (int step = 0; step < 100; ++step) log.log(step, {{"loss", 1.0 / (step + 1)}, {"lr", 1e-3}});
  log.finish();
}
