// train_digits() on a handful of images.

#include "ranklog/trainer/training.hpp"

#include <gtest/gtest.h>

#include "rank_threads.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::test {
namespace {

Digits make_digits(std::size_t count) {
  Digits digits;
  for (std::size_t i = 0; i < count; ++i) {
    for (int pixel = 0; pixel < Digits::kPixels; ++pixel) {
      digits.pixels.push_back(static_cast<float>((i + static_cast<std::size_t>(pixel)) % 17) / 16);
    }
    digits.labels.push_back(static_cast<std::int64_t>(i % Digits::kClasses));
  }
  return digits;
}

class Training : public testing::Test {
 protected:
  Training() { options_.epochs = options_.batch_size = options_.checkpoint_interval = 2; }

  TrainingResult train(Communicator& communicator, const DigitsSplit& data, const TrainingHooks& hooks = {}) {
    Options options;
    options.console = false;
    options.system_metrics_interval = std::chrono::milliseconds(0);
    options.log_dir = dir_.path();
    options.project = "p";
    options.choice = LaunchChoice{"x", "one launch", false};
    options.rank = options.local_rank = communicator.rank();
    options.world_size = options.local_world_size = communicator.size();
    options.node = 0;
    Writer log = Writer::open(options);
    const TrainingResult result =
        train_digits(options_, data, {}, dir_ / "p" / "x", communicator, log, hooks);
    log.finish();
    return result;
  }
  [[nodiscard]] bool has_key(int rank, const std::string& name) const {
    const RankFile file = RankFile::open(dir_ / "p" / "x" / rank_file_name(rank, 0));
    for (const auto& key : file.keys()) {
      if (key.display() == name) return true;
    }
    return false;
  }

  TempDir dir_;
  TrainingOptions options_;
};

TEST_F(Training, AskedToStopInItsVeryLastStepItIsComplete) {
  const DigitsSplit data{make_digits(6), make_digits(2)};  // 3 steps an epoch
  for (const StopRequest request : {StopRequest::kPreempt, StopRequest::kInterrupt}) {
    expect_all_well(run_in_process_ranks(1, 60s, [&](Communicator& communicator) {
      int steps = 0;
      TrainingHooks hooks;
      hooks.stop_requested = [&] { return ++steps == 6 ? request : StopRequest::kNone; };
      const TrainingResult result = train(communicator, data, hooks);
      EXPECT_EQ(result.steps, 6);
      EXPECT_EQ(result.epochs, 2);
      EXPECT_EQ(result.stopped_by, StopRequest::kNone);
    }));
  }
}

TEST_F(Training, AskedToStopBeforeItSavesItsState) {
  const DigitsSplit data{make_digits(6), make_digits(2)};
  expect_all_well(run_in_process_ranks(1, 60s, [&](Communicator& communicator) {
    TrainingHooks hooks;
    hooks.stop_requested = [] { return StopRequest::kPreempt; };
    const TrainingResult result = train(communicator, data, hooks);
    EXPECT_EQ(result.steps, 1);
    EXPECT_EQ(result.stopped_by, StopRequest::kPreempt);
    EXPECT_EQ(result.newest_checkpoint, "checkpoints/step-00000001/model.pt");
  }));
}

TEST_F(Training, ARankWithoutTestImagesHasNoAccuracy) {
  const DigitsSplit data{make_digits(8), make_digits(1)};
  expect_all_well(
      run_in_process_ranks(2, 60s, [&](Communicator& communicator) { (void)train(communicator, data); }));
  EXPECT_TRUE(has_key(0, "accuracy"));
  EXPECT_TRUE(has_key(1, "epoch"));
  EXPECT_FALSE(has_key(1, "accuracy"));
}

}  // namespace
}  // namespace ranklog::test
