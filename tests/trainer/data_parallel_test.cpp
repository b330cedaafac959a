// What the ranks do together against what one process does with the joined batch.

#include "ranklog/trainer/data_parallel.hpp"

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <mutex>

#include "digits_model.hpp"
#include "rank_threads.hpp"

namespace ranklog::test {
namespace {

namespace F = torch::nn::functional;

constexpr int kSteps = 20;
constexpr std::int64_t kGlobalBatch = 32;

struct Trace {
  std::vector<double> losses;
  std::vector<torch::Tensor> parameters;  // one flat tensor a step

  void add(double loss, const torch::nn::Module& model) {
    losses.push_back(loss);
    std::vector<torch::Tensor> flat;
    for (const torch::Tensor& parameter : model.parameters()) flat.push_back(parameter.detach().flatten());
    parameters.push_back(torch::cat(flat));
  }
};

struct Samples {
  torch::Tensor images = torch::rand({kSteps * kGlobalBatch, 1, 8, 8});
  torch::Tensor labels = torch::randint(0, 10, {kSteps * kGlobalBatch}, torch::kLong);
};

std::shared_ptr<DigitsModel> seeded_model() {
  torch::manual_seed(7);
  return std::make_shared<DigitsModel>();
}

torch::optim::SGD optimizer_for(torch::nn::Module& model) {
  return torch::optim::SGD(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
}

Trace train_alone(const Samples& samples) {
  torch::set_num_threads(1);  // of the calling thread: ranks that are threads share the cores
  const auto model = seeded_model();
  auto optimizer = optimizer_for(*model);
  Trace trace;
  for (int step = 0; step < kSteps; ++step) {
    const auto first = step * kGlobalBatch;
    optimizer.zero_grad();
    const auto loss = F::cross_entropy(model->forward(samples.images.narrow(0, first, kGlobalBatch)),
                                       samples.labels.narrow(0, first, kGlobalBatch));
    loss.backward();
    optimizer.step();
    trace.add(loss.item<double>(), *model);
  }
  return trace;
}

// One rank; `model` is what it starts with, which only rank 0's should matter of.
Trace train_as_rank(const Samples& samples, const std::shared_ptr<DigitsModel>& model,
                    Communicator& communicator) {
  torch::set_num_threads(1);
  const std::int64_t share = kGlobalBatch / communicator.size();
  DataParallel parallel(model, communicator);
  auto optimizer = optimizer_for(*model);
  Trace trace;
  for (int step = 0; step < kSteps; ++step) {
    const auto first = step * kGlobalBatch + communicator.rank() * share;
    optimizer.zero_grad();
    const auto loss = F::cross_entropy(model->forward(samples.images.narrow(0, first, share)),
                                       samples.labels.narrow(0, first, share));
    EXPECT_GE(parallel.backward(loss).count(), 0);
    optimizer.step();
    std::array<double, 1> mean{loss.item<double>() / communicator.size()};
    communicator.all_reduce_sum(std::span<double>(mean));
    trace.add(mean[0], *model);
  }
  return trace;
}

using Runner = Endings (*)(int, std::chrono::milliseconds, const std::function<void(Communicator&)>&);

class Parity : public testing::TestWithParam<std::tuple<Runner, int>> {};

TEST_P(Parity, LossAndParametersEqualThoseOfOneProcessStepByStep) {
  const auto [run, size] = GetParam();
  torch::manual_seed(3);
  const Samples samples;
  const Trace alone = train_alone(samples);

  // Models are made one after the other: the generator is the process's, not the thread's.
  std::vector<std::shared_ptr<DigitsModel>> models{seeded_model()};
  for (int rank = 1; rank < size; ++rank) models.push_back(std::make_shared<DigitsModel>());
  std::vector<Trace> together(static_cast<std::size_t>(size));
  expect_all_well(run(size, 60s, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    together[rank] = train_as_rank(samples, models[rank], communicator);
  }));

  for (std::size_t step = 0; step < kSteps; ++step) {
    ASSERT_NEAR(together[0].losses.at(step), alone.losses[step], 1e-5) << "step " << step;
    const auto difference =
        (together[0].parameters.at(step) - alone.parameters[step]).abs().max().item<double>();
    ASSERT_LT(difference, 1e-5) << "step " << step;
    for (std::size_t rank = 1; rank < together.size(); ++rank) {
      ASSERT_TRUE(together[rank].parameters.at(step).equal(together[0].parameters[step]))
          << "rank " << rank << ", step " << step;
    }
  }
  EXPECT_LT(alone.losses.back(), alone.losses.front() * 1.5);  // it is a real run, not one that blew up
}

INSTANTIATE_TEST_SUITE_P(WorldSizes, Parity,
                         testing::Combine(testing::Values(&run_c10d_ranks, &run_in_process_ranks),
                                          testing::Values(1, 2, 4)),
                         [](const auto& variant) {
                           return std::string(variant.index < 3 ? "C10d" : "InProcess") +
                                  std::to_string(std::get<1>(variant.param));
                         });

TEST(DataParallel, BuffersComeFromRankZeroToo) {
  class WithBuffer : public torch::nn::Module {
   public:
    explicit WithBuffer(double value)
        : weight(register_parameter("weight", torch::full({3}, value))),
          buffer(register_buffer("buffer", torch::full({2}, value))) {}
    torch::Tensor weight, buffer;
  };
  std::vector<std::shared_ptr<WithBuffer>> modules{std::make_shared<WithBuffer>(1.5),
                                                   std::make_shared<WithBuffer>(2.5)};
  expect_all_well(run_c10d_ranks(2, 60s, [&](Communicator& communicator) {
    const DataParallel parallel(modules[static_cast<std::size_t>(communicator.rank())], communicator);
  }));
  EXPECT_TRUE(modules[1]->weight.equal(torch::full({3}, 1.5)));
  EXPECT_TRUE(modules[1]->buffer.equal(torch::full({2}, 1.5)));
}

// c10d's Reducer notes every gradient of every step until it has laid out its buckets a second time.
TEST(DataParallel, NothingHoldsMoreOfTheParametersAfterManySteps) {
  expect_all_well(run_c10d_ranks(2, 60s, [&](Communicator& communicator) {
    auto model = std::make_shared<torch::nn::SequentialImpl>(torch::nn::Linear(4, 1));
    DataParallel parallel(model, communicator);
    const auto step = [&] {
      model->zero_grad();
      parallel.backward(model->forward(torch::ones({2, 4})).mean());
    };
    step();
    const auto holders = model->parameters().front().use_count();
    for (int i = 0; i < 50; ++i) step();
    EXPECT_EQ(model->parameters().front().use_count(), holders);
  }));
}

TEST(DataParallel, WaitingIsMeasuredOnTheRankThatIsAhead) {
  std::array<std::chrono::nanoseconds, 2> waited{};
  expect_all_well(run_c10d_ranks(2, 60s, [&](Communicator& communicator) {
    auto model = std::make_shared<torch::nn::SequentialImpl>(torch::nn::Linear(4, 1));
    DataParallel parallel(model, communicator);
    const auto loss = model->forward(torch::ones({2, 4})).mean();
    if (communicator.rank() == 1) std::this_thread::sleep_for(300ms);
    waited[static_cast<std::size_t>(communicator.rank())] = parallel.backward(loss);
  }));
  EXPECT_GT(waited[0], 200ms);
  EXPECT_LT(waited[1], waited[0]);
}

}  // namespace
}  // namespace ranklog::test
