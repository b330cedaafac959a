#pragma once
// model.pt: one dictionary with everything a run needs to go on, in the form of Python's torch.save.
//
//   format_version  1
//   model           {parameter or buffer name: tensor}
//   optimizer       {state: {index: {momentum_buffer: tensor}}, param_groups: [{lr, momentum, ..., params:
//   [index]}]},
//                   which Python's torch.optim.SGD.load_state_dict takes as it is
//   step, epoch     done so far; epoch counts whole ones
//   world_size, batch_size, seed, best_accuracy
//   rng             [by rank: state of its CPU generator, bytes]

#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ranklog/trainer/checkpoint_folder.hpp"

namespace ranklog {

struct TrainingProgress {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t world_size = 1;
  std::int64_t batch_size = 0;
  std::uint64_t seed = 0;
  double best_accuracy = 0;
  std::vector<std::string> rng;  // by rank
};

void write_training_state(const torch::nn::Module& model, torch::optim::SGD& optimizer,
                          const TrainingProgress& progress, const CheckpointWriter::Sink& sink);

// Throws Error (kDamaged) naming the file and what is wrong with it: which tensor, which shape.
[[nodiscard]] TrainingProgress read_training_state(const std::filesystem::path& file,
                                                   torch::nn::Module& model, torch::optim::SGD& optimizer);

}  // namespace ranklog
