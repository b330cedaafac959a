#pragma once
// What ranklog-train does: a small convolutional network learns the digits, data-parallel.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ranklog/schema/identity.hpp"
#include "ranklog/trainer/communicator.hpp"
#include "ranklog/trainer/digits.hpp"
#include "ranklog/writer/writer.hpp"

namespace ranklog {

struct TrainingOptions {
  std::int64_t epochs = 20;
  std::int64_t batch_size = 16;  // samples a rank and step
  double learning_rate = 0.05;
  double momentum = 0.9;
  std::uint64_t seed = 1;
  std::int64_t checkpoint_interval = 1;  // epochs; 0: none but on preemption
  int keep = 0;                          // newest checkpoints kept; 0: all
};

// Where a launch goes on: decided by rank 0, the same on every rank.
struct ResumePlan {
  std::filesystem::path model_file;     // empty: from the first step
  std::int64_t step = 0;                // first step that is done anew
  std::vector<std::string> skipped;     // checkpoints that cannot be used, and why
  std::vector<std::string> unrecorded;  // names of whole checkpoints that no log tells of as artifacts
};

struct AttemptPlan {
  LaunchChoice choice;           // for Options::choice
  std::filesystem::path folder;  // the experiment's
  ResumePlan resume;
};

// A collective call, and the one place that decides about resuming: rank 0 chooses the experiment as the
// writer would, looks for its newest whole checkpoint if it is continued, and tells the others. Only rank 0's
// `request` and `options` count, but for the log folder: that is each rank's own. Checkpoints that were never
// published are removed, damaged ones are retired. Throws on every rank what rank 0 found: Error (kUsage,
// kNotFound, kIo).
[[nodiscard]] AttemptPlan plan_attempt(const Options& options, const LaunchRequest& request,
                                       Communicator& communicator);

// Throws Error for whatever train_digits() would refuse at its start: too few images for the batch (kUsage),
// a checkpoint of other settings (kUsage) or one that cannot be loaded (kDamaged). Not a collective call.
void check_training(const TrainingOptions& options, const DigitsSplit& data, const ResumePlan& resume,
                    const Communicator& communicator);

enum class StopRequest : std::uint8_t { kNone, kPreempt, kInterrupt };

struct TrainingHooks {
  // Asked after each step; what any rank answers counts for all.
  std::function<StopRequest()> stop_requested;
  // Rank 0's account for people, one line an epoch.
  std::function<void(const std::string& line)> progress;
};

struct TrainingResult {
  StopRequest stopped_by = StopRequest::kNone;  // kNone whenever all steps are done
  std::int64_t steps = 0;                       // done in all attempts
  std::int64_t epochs = 0;                      // the same
  double test_accuracy = 0;       // of the whole test set after the last epoch; 0 if none was finished
  std::string newest_checkpoint;  // relative to the experiment's folder; empty if there is none
};

// A collective call. The result of a run whose checkpoint has all the steps that `options` ask for; empty if
// there is training left to do.
[[nodiscard]] std::optional<TrainingResult> completed_training(const TrainingOptions& options,
                                                               const DigitsSplit& data,
                                                               const ResumePlan& resume,
                                                               Communicator& communicator);

// A collective call, made with a log that is open on every rank; the caller finishes the log.
//
// Every rank logs at every step (counted from 0 over all epochs and attempts):
//   loss               of its own batch, before the update
//   grad_norm          2-norm of the averaged gradient of all parameters
//   lr                 learning rate of the update
//   samples_per_second its own samples over its step_time
//   step_time          seconds from fetching the batch to the end of the update
//   barrier_wait       seconds for which it had its own gradients and waited for the other ranks' (part of
//                      step_time): large on fast ranks, small on the one that the others wait for
// and on the last step of an epoch: epoch (epochs done), accuracy (of its own share of the test images, if
// it has one).
// Rank 0 adds loss_all_reduced (mean over the ranks) and test_accuracy (of all test images).
//
// Throws Error as Communicator, Checkpointer and the checkpoint to be loaded do.
[[nodiscard]] TrainingResult train_digits(const TrainingOptions& options, const DigitsSplit& data,
                                          const ResumePlan& resume, const std::filesystem::path& folder,
                                          Communicator& communicator, Writer& log,
                                          const TrainingHooks& hooks);

// "LibTorch 1.13.0"
[[nodiscard]] std::string libtorch_version();

}  // namespace ranklog
