#pragma once
// LibTorch 1.13's package leaves this header out, though c10d's reducer.hpp includes it. These are the only
// two names that reducer.hpp takes from it. On the include path for 1.13 alone.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace torch::distributed::autograd {

class DistAutogradContext {
 public:
  using GradCallback = std::function<bool(at::Tensor&)>;
};
using ContextPtr = std::shared_ptr<DistAutogradContext>;

}  // namespace torch::distributed::autograd
