#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "digits_model.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/trainer/checkpointer.hpp"
#include "ranklog/trainer/data_parallel.hpp"
#include "ranklog/trainer/sampler.hpp"
#include "ranklog/trainer/training.hpp"
#include "training_state.hpp"

namespace ranklog {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

struct Batch {
  torch::Tensor images;  // [batch, 1, 8, 8]
  torch::Tensor labels;  // [batch]
};

Batch make_batch(const Digits& digits, const std::vector<std::size_t>& indices) {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{torch::empty({count, 1, Digits::kSide, Digits::kSide}), torch::empty({count}, torch::kLong)};
  float* pixels = batch.images.data_ptr<float>();
  auto* labels = batch.labels.data_ptr<std::int64_t>();
  for (const std::size_t index : indices) {
    pixels = std::copy_n(digits.pixels.data() + index * Digits::kPixels, Digits::kPixels, pixels);
    *labels++ = digits.labels[index];
  }
  return batch;
}

// Every size-th image, beginning with the rank-th.
Batch make_share(const Digits& digits, int rank, int size) {
  std::vector<std::size_t> indices;
  for (auto i = static_cast<std::size_t>(rank); i < digits.size(); i += static_cast<std::size_t>(size)) {
    indices.push_back(i);
  }
  return make_batch(digits, indices);
}

double gradient_norm(const torch::nn::Module& model) {
  double squares = 0;
  for (const torch::Tensor& parameter : model.parameters()) {
    squares += std::pow(parameter.grad().norm().item<double>(), 2);
  }
  return std::sqrt(squares);
}

std::string generator_state() {
  const torch::Tensor state = at::detail::getDefaultCPUGenerator().get_state().contiguous();
  return {static_cast<const char*>(state.data_ptr()), state.nbytes()};
}

void set_generator_state(const std::string& bytes) {
  torch::Tensor state = torch::empty({static_cast<std::int64_t>(bytes.size())}, torch::kByte);
  std::memcpy(state.data_ptr(), bytes.data(), bytes.size());
  at::Generator generator = at::detail::getDefaultCPUGenerator();  // a handle on the one generator
  generator.set_state(state);
}

// Parameters are drawn from the same numbers on every rank; whatever is random later is not.
std::shared_ptr<DigitsModel> make_model(std::uint64_t seed, int rank) {
  torch::manual_seed(seed);
  auto model = std::make_shared<DigitsModel>();
  torch::manual_seed(seed + 1 + static_cast<std::uint64_t>(rank));
  return model;
}

void require_same(const std::string& name, std::int64_t saved, std::int64_t given) {
  if (saved == given) return;
  throw Error(ErrorCode::kUsage,
              "the checkpoint was trained with " + std::to_string(saved) + " (" + name +
                  "), and this launch has " + std::to_string(given),
              "resume with the same value, or start another run");
}

// What decides the order of the samples cannot change in mid-run.
void require_same_order(const TrainingProgress& progress, const TrainingOptions& options, int world_size) {
  require_same("--nproc_per_node or WORLD_SIZE", progress.world_size, world_size);
  require_same("--batch_size", progress.batch_size, options.batch_size);
  require_same("--seed", static_cast<std::int64_t>(progress.seed), static_cast<std::int64_t>(options.seed));
}

torch::optim::SGD make_optimizer(const DigitsModel& model, const TrainingOptions& options) {
  return torch::optim::SGD(model.parameters(),
                           torch::optim::SGDOptions(options.learning_rate).momentum(options.momentum));
}

// "checkpoints/step-00000400/model.pt"; empty for an empty path.
std::string path_in_experiment(const std::filesystem::path& model_file) {
  if (model_file.empty()) return {};
  return model_file.lexically_relative(model_file.parent_path().parent_path().parent_path()).generic_string();
}

struct Evaluation {
  std::optional<double> own;  // accuracy of this rank's share; empty if it has no image
  double all = 0;
};

// A collective call.
Evaluation evaluate(DigitsModel& model, const Batch& share, Communicator& communicator) {
  const torch::NoGradGuard no_grad;
  const auto count = static_cast<double>(share.labels.size(0));
  double right = 0;
  if (count > 0) right = model.forward(share.images).argmax(1).eq(share.labels).sum().item<double>();
  std::array<double, 2> sums{right, count};
  communicator.all_reduce_sum(std::span<double>(sums));
  return {count > 0 ? std::optional(right / count) : std::nullopt, sums[1] > 0 ? sums[0] / sums[1] : 0};
}

DistributedSampler make_sampler(const TrainingOptions& options, const DigitsSplit& data,
                                const Communicator& communicator) {
  return {data.train.size(), static_cast<std::size_t>(options.batch_size), communicator.size(), options.seed};
}

class DigitsTraining {
 public:
  DigitsTraining(const TrainingOptions& options, const DigitsSplit& data, const ResumePlan& resume,
                 const std::filesystem::path& folder, Communicator& communicator, Writer& log,
                 const TrainingHooks& hooks)
      : options_(options),
        data_(data),
        communicator_(communicator),
        log_(log),
        hooks_(hooks),
        sampler_(make_sampler(options, data, communicator)),
        test_share_(make_share(data.test, communicator.rank(), communicator.size())),
        model_(make_model(options.seed, communicator.rank())),
        optimizer_(make_optimizer(*model_, options)),
        checkpointer_(communicator, log,
                      {folder / kCheckpointsFolderName, artifact_name(log.identity().experiment + "-model"),
                       options.keep, resume.model_file.parent_path()}) {}

  TrainingResult run(const ResumePlan& resume) {
    if (!resume.model_file.empty()) load(resume);
    checkpointer_.record_earlier(resume.unrecorded);
    DataParallel parallel(model_, communicator_);
    logged_barrier(communicator_, log_, "first step", step_);
    if (all_done()) test_accuracy_ = evaluate(*model_, test_share_, communicator_).all;
    while (!all_done() && stop_ == StopRequest::kNone) {
      train_step(parallel);
      if (step_ % sampler_.steps_per_epoch() == 0) finish_epoch();
    }
    if (all_done()) stop_ = StopRequest::kNone;  // there was nothing left to be stopped
    if (stop_ == StopRequest::kPreempt && saved_step_ != step_) save({});
    logged_barrier(communicator_, log_, "end", step_);
    return {stop_, step_, epochs_done(), test_accuracy_,
            checkpointer_.newest().empty() ? path_in_experiment(resume.model_file) : checkpointer_.newest()};
  }

 private:
  [[nodiscard]] bool all_done() const { return step_ >= options_.epochs * sampler_.steps_per_epoch(); }
  [[nodiscard]] std::int64_t epochs_done() const { return step_ / sampler_.steps_per_epoch(); }

  void load(const ResumePlan& resume) {
    const TrainingProgress progress = read_training_state(resume.model_file, *model_, optimizer_);
    require_same_order(progress, options_, communicator_.size());
    step_ = progress.step;
    saved_step_ = progress.step;
    best_accuracy_ = progress.best_accuracy;
    set_generator_state(progress.rng.at(static_cast<std::size_t>(communicator_.rank())));
  }

  void train_step(DataParallel& parallel) {
    const std::int64_t per_epoch = sampler_.steps_per_epoch();
    const auto start = Clock::now();
    const Batch batch =
        make_batch(data_.train, sampler_.batch(step_ / per_epoch, step_ % per_epoch, communicator_.rank()));
    optimizer_.zero_grad();
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(model_->forward(batch.images), batch.labels);
    const auto waited = parallel.backward(loss);
    const double norm = gradient_norm(*model_);
    optimizer_.step();
    const double step_time = seconds(Clock::now() - start);
    const double own_loss = loss.item<double>();
    const double mean_loss = agree_on(own_loss);
    log_.log(step_, {{"loss", own_loss},
                     {"grad_norm", norm},
                     {"lr", options_.learning_rate},
                     {"samples_per_second", static_cast<double>(options_.batch_size) / step_time},
                     {"step_time", step_time},
                     {"barrier_wait", seconds(waited)}});
    if (communicator_.rank() == 0) log_.log(step_, {{"loss_all_reduced", mean_loss}});
    epoch_loss_ += mean_loss;
    ++epoch_steps_;
    ++step_;
  }

  // Mean loss over the ranks; and whether any of them was told to stop, so that all stop at the same step.
  double agree_on(double own_loss) {
    const StopRequest asked = hooks_.stop_requested ? hooks_.stop_requested() : StopRequest::kNone;
    std::array<double, 3> sums{own_loss, asked == StopRequest::kPreempt ? 1.0 : 0.0,
                               asked == StopRequest::kInterrupt ? 1.0 : 0.0};
    communicator_.all_reduce_sum(std::span<double>(sums));
    if (sums[1] > 0) stop_ = StopRequest::kPreempt;
    if (sums[2] > 0) stop_ = StopRequest::kInterrupt;
    return sums[0] / communicator_.size();
  }

  void finish_epoch() {
    const Evaluation evaluation = evaluate(*model_, test_share_, communicator_);
    test_accuracy_ = evaluation.all;
    const std::int64_t epoch = epochs_done();
    log_.log(step_ - 1, {{"epoch", epoch}});
    if (evaluation.own) log_.log(step_ - 1, {{"accuracy", *evaluation.own}});
    if (communicator_.rank() == 0) log_.log(step_ - 1, {{"test_accuracy", test_accuracy_}});
    const bool last = epoch == options_.epochs;
    if (options_.checkpoint_interval > 0 && (last || epoch % options_.checkpoint_interval == 0))
      save(aliases());
    tell_progress(epoch);
    epoch_loss_ = 0;
    epoch_steps_ = 0;
  }

  std::vector<std::string> aliases() {
    std::vector<std::string> names{"epoch-" + std::to_string(epochs_done())};
    if (test_accuracy_ > best_accuracy_) {
      best_accuracy_ = test_accuracy_;
      names.emplace_back("best");
    }
    return names;
  }

  void save(const std::vector<std::string>& aliases) {
    const TrainingProgress progress{step_,
                                    epochs_done(),
                                    communicator_.size(),
                                    options_.batch_size,
                                    options_.seed,
                                    best_accuracy_,
                                    communicator_.all_gather(generator_state())};
    CheckpointManifest about;
    about.step = step_;
    about.epoch = epochs_done();
    if (!aliases.empty()) about.metrics["accuracy"] = test_accuracy_;
    about.aliases = aliases;
    checkpointer_.save(about, [&](const CheckpointWriter::Sink& sink) {
      write_training_state(*model_, optimizer_, progress, sink);
    });
    saved_step_ = step_;
  }

  void tell_progress(std::int64_t epoch) {
    if (communicator_.rank() != 0 || !hooks_.progress) return;
    const double loss = epoch_loss_ / static_cast<double>(std::max<std::int64_t>(epoch_steps_, 1));
    std::array<char, 200> line{};
    std::snprintf(line.data(), line.size(),
                  "epoch %*lld/%lld  step %lld  loss %.4f  test accuracy %.4f  %.1f s",
                  static_cast<int>(std::to_string(options_.epochs).size()), static_cast<long long>(epoch),
                  static_cast<long long>(options_.epochs), static_cast<long long>(step_),
                  std::isnan(loss) ? std::abs(loss) : loss,  // "nan", never "-nan"
                  test_accuracy_, seconds(Clock::now() - started_));
    hooks_.progress(line.data());
  }

  const TrainingOptions options_;
  const DigitsSplit& data_;
  Communicator& communicator_;
  Writer& log_;
  const TrainingHooks& hooks_;

  DistributedSampler sampler_;
  Batch test_share_;
  std::shared_ptr<DigitsModel> model_;
  torch::optim::SGD optimizer_;
  Checkpointer checkpointer_;

  Clock::time_point started_ = Clock::now();
  std::int64_t step_ = 0;         // steps done
  std::int64_t saved_step_ = -1;  // of the newest checkpoint
  StopRequest stop_ = StopRequest::kNone;
  double test_accuracy_ = 0;
  double best_accuracy_ = 0;
  double epoch_loss_ = 0;  // sum over the steps of this epoch
  std::int64_t epoch_steps_ = 0;
};

}  // namespace

void check_training(const TrainingOptions& options, const DigitsSplit& data, const ResumePlan& resume,
                    const Communicator& communicator) {
  const DistributedSampler sampler = make_sampler(options, data, communicator);
  const auto model = make_model(options.seed, communicator.rank());
  torch::optim::SGD optimizer = make_optimizer(*model, options);
  if (resume.model_file.empty()) return;
  require_same_order(read_training_state(resume.model_file, *model, optimizer), options, communicator.size());
}

TrainingResult train_digits(const TrainingOptions& options, const DigitsSplit& data, const ResumePlan& resume,
                            const std::filesystem::path& folder, Communicator& communicator, Writer& log,
                            const TrainingHooks& hooks) {
  torch::set_num_threads(1);  // ranks share the cores
  return DigitsTraining(options, data, resume, folder, communicator, log, hooks).run(resume);
}

std::optional<TrainingResult> completed_training(const TrainingOptions& options, const DigitsSplit& data,
                                                 const ResumePlan& resume, Communicator& communicator) {
  const std::int64_t per_epoch = make_sampler(options, data, communicator).steps_per_epoch();
  if (resume.model_file.empty() || resume.step < options.epochs * per_epoch) return std::nullopt;
  const auto model = make_model(options.seed, communicator.rank());
  torch::optim::SGD optimizer = make_optimizer(*model, options);
  const TrainingProgress progress = read_training_state(resume.model_file, *model, optimizer);
  const Batch share = make_share(data.test, communicator.rank(), communicator.size());
  return TrainingResult{StopRequest::kNone, progress.step, progress.step / per_epoch,
                        evaluate(*model, share, communicator).all, path_in_experiment(resume.model_file)};
}

std::string libtorch_version() {
  return "LibTorch " TORCH_VERSION;
}

}  // namespace ranklog
