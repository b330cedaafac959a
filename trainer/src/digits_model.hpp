#pragma once
// A small convolutional network for 8x8 images.

#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "ranklog/trainer/digits.hpp"

namespace ranklog {

// images [batch, 1, 8, 8] in 0..1 -> logits [batch, 10]. Neither batch normalisation nor dropout: what the
// ranks do together equals what one process does with the joined batch.
class DigitsModel : public torch::nn::Module {
 public:
  DigitsModel()
      : conv1_(register_module("conv1", torch::nn::Conv2d(padded(1, 16)))),
        conv2_(register_module("conv2", torch::nn::Conv2d(padded(16, 32)))),
        fc1_(register_module("fc1", torch::nn::Linear(kPooled, 64))),
        fc2_(register_module("fc2", torch::nn::Linear(64, Digits::kClasses))) {}

  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor x = torch::relu(conv1_->forward(images));
    x = torch::relu(conv2_->forward(x));
    x = torch::max_pool2d(x, 2);
    x = torch::relu(fc1_->forward(x.flatten(1)));
    return fc2_->forward(x);
  }

 private:
  static constexpr std::int64_t kPooled = 32LL * (Digits::kSide / 2) * (Digits::kSide / 2);

  static torch::nn::Conv2dOptions padded(std::int64_t in, std::int64_t out) {
    return torch::nn::Conv2dOptions(in, out, 3).padding(1);
  }

  torch::nn::Conv2d conv1_, conv2_;
  torch::nn::Linear fc1_, fc2_;
};

}  // namespace ranklog
