#pragma once
// One model on every rank, kept equal by averaging gradients.

#include <torch/nn/module.h>

#include <chrono>
#include <memory>

#include "ranklog/trainer/communicator.hpp"

namespace ranklog {

// At construction every rank takes rank 0's parameters and buffers. After backward() the gradients of every
// rank are the mean over the ranks of what each would have had alone, so that with equal batches (and a loss
// that is a mean) the ranks together do what one process would do with the joined batch.
//
// With c10d the gradients travel in buckets while backward is still computing (c10d::Reducer). All
// parameters must take part in every loss. The communicator must outlive this object. Threads: the rank's.
class DataParallel {
 public:
  // Throws Error (kTimeout) like every collective; c10::Error if the ranks' models differ in shape.
  DataParallel(std::shared_ptr<torch::nn::Module> module, Communicator& communicator);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // loss: scalar. Returns how long this rank waited for the others (and for the network): the time from the
  // moment when its own gradients were complete until the mean was there. Zero for one rank. The gradients
  // must have been zeroed or be undefined. Throws Error (kTimeout) naming the ranks that are gone.
  std::chrono::nanoseconds backward(const torch::Tensor& loss);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ranklog
