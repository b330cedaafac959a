#include "ranklog/trainer/data_parallel.hpp"

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "c10d_access.hpp"

namespace ranklog {
namespace {

using Clock = std::chrono::steady_clock;
using GroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

// c10d's own way to reduce a bucket, which also notes when the last one was handed over: from then on the
// rank has nothing to do but wait.
class TimedAllReduce : public c10d::CommHookInterface {
 public:
  TimedAllReduce(GroupPtr group, Clock::time_point& handed_over)
      : group_(std::move(group)), handed_over_(handed_over) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    std::vector<at::Tensor> tensors{bucket.getBufferRef().div_(group_->getSize())};
    handed_over_ = Clock::now();
    return group_->allreduce(tensors)->getFuture();
  }

  at::Tensor parseHookResult(const c10::IValue& result) override {
    return result.isTensor() ? result.toTensor() : result.toTensorVector().front();
  }

 private:
  GroupPtr group_;
  Clock::time_point& handed_over_;
};

// Buckets in reverse order of the parameters, because backward finishes the last layers first.
std::unique_ptr<c10d::Reducer> make_reducer(const std::vector<at::Tensor>& parameters,
                                            const GroupPtr& group) {
  const std::size_t first = c10d::kDefaultFirstBucketBytes;
  const std::size_t rest = c10d::kDefaultBucketBytesCap;
  const std::vector<bool> sparse(parameters.size(), false);
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(parameters, {first, rest}, sparse);
  std::reverse(buckets.begin(), buckets.end());
  std::reverse(limits.begin(), limits.end());
  return std::make_unique<c10d::Reducer>(
      parameters, std::move(buckets), std::move(limits), group, sparse, static_cast<std::int64_t>(rest),
      /*find_unused_parameters=*/false,
      // As views, the gradients could not be detached, which the C++ optimizers' zero_grad() does.
      /*gradient_as_bucket_view=*/false, std::unordered_map<std::size_t, std::string>{},
      static_cast<std::int64_t>(first));
}

}  // namespace

struct DataParallel::Impl {
  std::shared_ptr<torch::nn::Module> module;
  Communicator& communicator;
  GroupPtr group;
  std::vector<at::Tensor> parameters;
  Clock::time_point handed_over;
  std::unique_ptr<c10d::Reducer> reducer;  // none without a process group

  // Gloo's errors carry the place in its sources; all others are the caller's and go on as they are.
  template <typename Call>
  void collectively(Call call) {
    try {
      call();
    } catch (const std::exception& e) {
      if (std::string_view(e.what()).find("gloo/") == std::string_view::npos) throw;
      throw explain_broken_collective(communicator, e.what());
    }
  }

  void take_over_rank_zero() {
    torch::NoGradGuard no_grad;
    std::vector<at::Tensor> state = parameters;
    for (const at::Tensor& buffer : module->buffers()) state.push_back(buffer);
    if (group) {
      collectively([&] {
        c10d::verify_params_across_processes(group, parameters, {});
        c10d::broadcast_coalesced(group, state, c10d::kDefaultBucketBytesCap);
      });
      return;
    }
    for (at::Tensor& tensor : state) take_over(tensor);
  }

  // After its first backward the Reducer wants to lay out the buckets once more, in the order in which the
  // gradients came; until then it notes each gradient of each step, for ever. It gets its way here, with a
  // backward whose order depends on nothing but the parameters: so the layout is the same in every launch,
  // and sums are added up in the same order after a resume.
  void settle_buckets() {
    torch::Tensor nothing = torch::zeros({});
    for (const at::Tensor& parameter : parameters) nothing = nothing + parameter.sum() * 0;
    collectively([&] {
      reducer->prepare_for_forward();
      reducer->prepare_for_backward({nothing});
      nothing.backward();
      reducer->rebuild_buckets();
    });
    for (at::Tensor& parameter : parameters) parameter.mutable_grad() = at::Tensor();
  }

  void take_over(at::Tensor& tensor) {
    at::Tensor bytes = tensor.detach().contiguous();
    const std::string zero =
        communicator.broadcast({static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()});
    std::memcpy(bytes.data_ptr(), zero.data(), bytes.nbytes());
    tensor.copy_(bytes);
  }

  // The way without a process group: after backward, not during it.
  void average_gradients() {
    torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : parameters) {
      at::Tensor sum = parameter.grad().to(at::kDouble).contiguous();
      communicator.all_reduce_sum(
          std::span<double>(sum.data_ptr<double>(), static_cast<std::size_t>(sum.numel())));
      parameter.grad().copy_(sum / communicator.size());
    }
  }
};

DataParallel::DataParallel(std::shared_ptr<torch::nn::Module> module, Communicator& communicator)
    : impl_(new Impl{std::move(module), communicator, process_group_of(communicator), {}, {}, nullptr}) {
  for (const at::Tensor& parameter : impl_->module->parameters()) {
    if (parameter.requires_grad()) impl_->parameters.push_back(parameter);
  }
  if (communicator.size() > 1) impl_->take_over_rank_zero();
  if (!impl_->group) return;
  impl_->reducer = make_reducer(impl_->parameters, impl_->group);
  impl_->reducer->register_comm_hook(std::make_unique<TimedAllReduce>(impl_->group, impl_->handed_over));
  impl_->settle_buckets();
}

DataParallel::~DataParallel() = default;

std::chrono::nanoseconds DataParallel::backward(const torch::Tensor& loss) {
  if (impl_->communicator.size() == 1) {
    loss.backward();
    return {};
  }
  if (impl_->reducer) {
    impl_->collectively([&] {
      impl_->reducer->prepare_for_forward();  // only starts the Reducer's own count of this step
      impl_->reducer->prepare_for_backward({loss});
      loss.backward();
    });
  } else {
    loss.backward();
    impl_->handed_over = Clock::now();
    impl_->average_gradients();
  }
  return Clock::now() - impl_->handed_over;
}

}  // namespace ranklog
