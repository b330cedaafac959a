#include "training_state.hpp"

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include "digits_model.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::test {
namespace {

struct Training {
  std::shared_ptr<DigitsModel> model;
  std::unique_ptr<torch::optim::SGD> optimizer;

  explicit Training(std::uint64_t seed) {
    torch::manual_seed(seed);
    model = std::make_shared<DigitsModel>();
    optimizer = std::make_unique<torch::optim::SGD>(model->parameters(),
                                                    torch::optim::SGDOptions(0.05).momentum(0.9));
  }

  double step(const torch::Tensor& images, const torch::Tensor& labels) {
    optimizer->zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(model->forward(images), labels);
    loss.backward();
    optimizer->step();
    return loss.item<double>();
  }
};

class TrainingState : public testing::Test {
 protected:
  void save(Training& run, const TrainingProgress& progress) {
    std::string bytes;
    write_training_state(*run.model, *run.optimizer, progress, [&](const void* data, std::size_t size) {
      bytes.append(static_cast<const char*>(data), size);
    });
    write_file(path(), bytes);
  }
  std::string refusal(torch::nn::Module& model) {
    torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1));
    try {
      (void)read_training_state(path(), model, optimizer);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kDamaged);
      EXPECT_NE(std::string(e.what()).find(path().string()), std::string::npos);
      return e.what();
    }
    return "nothing was refused";
  }
  [[nodiscard]] std::filesystem::path path() const { return dir_ / "model.pt"; }

  TempDir dir_;
  torch::Tensor images_ = torch::rand({8, 1, 8, 8});
  torch::Tensor labels_ = torch::randint(0, 10, {8}, torch::kLong);
};

TEST_F(TrainingState, ARunGoesOnExactlyWhereItStopped) {
  Training straight(1);
  for (int i = 0; i < 3; ++i) straight.step(images_, labels_);
  save(straight, {});
  Training resumed(2);
  (void)read_training_state(path(), *resumed.model, *resumed.optimizer);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(straight.step(images_, labels_), resumed.step(images_, labels_));
}

TEST_F(TrainingState, ProgressComesBackWhole) {
  Training run(1);
  const TrainingProgress saved{400, 18, 4, 16, 77, 0.9625, {"state of rank 0", std::string("\0\1\2", 3)}};
  save(run, saved);
  const TrainingProgress read = read_training_state(path(), *run.model, *run.optimizer);
  EXPECT_EQ(read.step, 400);
  EXPECT_EQ(read.epoch, 18);
  EXPECT_EQ(read.world_size, 4);
  EXPECT_EQ(read.batch_size, 16);
  EXPECT_EQ(read.seed, 77U);
  EXPECT_EQ(read.best_accuracy, 0.9625);
  EXPECT_EQ(read.rng, saved.rng);
}

TEST_F(TrainingState, AnotherModelIsRefusedByTensorAndShape) {
  Training run(1);
  save(run, {});
  class Wider : public DigitsModel {
   public:
    Wider() { replace_module("fc2", torch::nn::Linear(64, 12)); }
  } wider;
  const std::string what = refusal(wider);
  EXPECT_NE(what.find("'fc2.weight' has shape [10, 64], this model's has [12, 64]"), std::string::npos)
      << what;
}

TEST_F(TrainingState, AModelOfOtherPartsIsRefused) {
  Training run(1);
  save(run, {});
  torch::nn::LinearImpl other(4, 2);
  EXPECT_NE(refusal(other).find("it has 8 tensors, this model has 2"), std::string::npos);
}

TEST_F(TrainingState, AFileThatIsNoCheckpointIsRefused) {
  write_file(path(), "hello");
  Training run(1);
  EXPECT_NE(refusal(*run.model).find("not a dictionary as torch.save writes it"), std::string::npos);
}

}  // namespace
}  // namespace ranklog::test
