#include "worker.hpp"

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>

#include "ranklog/schema/naming.hpp"
#include "ranklog/trainer/c10d_communicator.hpp"
#include "stop_signals.hpp"

namespace ranklog {
namespace {

constexpr std::chrono::seconds kFarewell{10};

class Worker {
 public:
  Worker(const Settings& settings, const EnvLookup& environment)
      : settings_(settings), environment_(environment), place_(resolve_place({}, environment)) {}

  int run() {
    try {
      meet();
      plan();
      catch_stop_signals();
      open_log();
      const TrainingResult result = train();
      return finish(result);
    } catch (const Error& e) {
      give_up(e.what(), exit_status(e.code()));
    } catch (const std::exception& e) {
      give_up(first_line(e.what()), kExitFailed);
    }
  }

 private:
  // Input that cannot be used is the user's to correct, whatever is wrong with it.
  [[nodiscard]] Digits read_data() const {
    try {
      return read_digits(settings_.data);
    } catch (const Error& e) {
      throw Error(ErrorCode::kUsage, e.what());
    }
  }

  void meet() {
    data_ = split_digits(read_data());
    Rendezvous rendezvous = read_rendezvous(place_, environment_);
    rendezvous.timeout = settings_.timeout;
    rendezvous.when_stuck = [this](const std::string& why) { end_stuck(why); };
    communicator_ = connect(rendezvous);
  }

  // Whatever can be refused is refused here, on every rank: before there is a log that could tell of an
  // attempt.
  void plan() {
    const LaunchId launch = resolve_launch(environment_);
    const std::string run_id = !settings_.run_id.empty() ? settings_.run_id : launch.experiment.value_or("");
    const bool resume =
        settings_.resume || environment_("RANKLOG_RESUME").value_or("") == "auto" || launch.restart_count > 0;
    if (settings_.resume && run_id.empty()) {
      throw Error(ErrorCode::kUsage, "--resume needs to know which run",
                  "name it with --run_id or RANKLOG_RUN_ID");
    }
    folder_ = experiment_folder(settings_.log_dir, settings_.project, run_id.empty() ? "untracked" : run_id);
    if (!run_id.empty()) resume_ = plan_resume(resume, folder_, *communicator_);
    check_training(settings_.training, data_, resume_, *communicator_);
    communicator_->barrier("settings checked", settings_.timeout);
  }

  void open_log() {
    log_.emplace(Writer::open(log_options()));
    open_log_ = &*log_;
    if (log_->enabled()) folder_ = log_->folder();
    describe();
    if (place_.rank == 0) tell_start();
  }

  [[nodiscard]] Options log_options() {
    Options options;
    options.log_dir = settings_.log_dir;
    options.project = settings_.project;
    options.experiment = settings_.run_id;
    options.group = settings_.group;
    options.log_strategy = settings_.log_strategy;
    options.rank = place_.rank;
    options.local_rank = place_.local_rank;
    options.world_size = place_.world_size;
    options.local_world_size = place_.local_world_size;
    options.node = place_.node;
    options.agree = [this](const std::string& mine) { return communicator_->broadcast(mine); };
    if (resume_.continues) {
      options.resume = true;
      options.resume_step = resume_.step;
    }
    return options;
  }

  void describe() {
    const TrainingOptions& t = settings_.training;
    log_->config({{"world_size", place_.world_size},
                  {"rank", place_.rank},
                  {"local_rank", place_.local_rank},
                  {"local_world_size", place_.local_world_size},
                  {"node", place_.node},
                  {"learning_rate", t.learning_rate},
                  {"momentum", t.momentum},
                  {"epochs", t.epochs},
                  {"batch_size", t.batch_size},
                  {"global_batch_size", t.batch_size * place_.world_size},
                  {"seed", static_cast<std::int64_t>(t.seed)},
                  {"architecture", "CNN"},
                  {"dataset", "digits"},
                  {"train_images", static_cast<std::int64_t>(data_.train.size())},
                  {"test_images", static_cast<std::int64_t>(data_.test.size())},
                  {"library", libtorch_version()}});
    log_->define_metric({"loss", "", false, false, {"min", "last"}, "minimize"});
    log_->define_metric({"accuracy", "", false, false, {"max", "last"}, "maximize"});
    if (place_.rank != 0) return;
    log_->define_metric({"loss_all_reduced", "", false, false, {"min", "last"}, "minimize"});
    log_->define_metric({"test_accuracy", "", false, false, {"max", "last"}, "maximize"});
  }

  void tell_start() {
    for (const std::string& what : resume_.skipped) say("skipping a damaged checkpoint: " + what);
    if (!resume_.model_file.empty()) {
      say("resuming at step " + std::to_string(resume_.step) + " from " + resume_.model_file.string());
    }
    say(std::to_string(place_.world_size) + (place_.world_size == 1 ? " rank, " : " ranks, ") +
        std::to_string(data_.train.size()) + " training and " + std::to_string(data_.test.size()) +
        " test images; log: " + folder_.string());
  }

  TrainingResult train() {
    TrainingHooks hooks;
    hooks.stop_requested = stop_requested;
    hooks.progress = [this](const std::string& line) { say(line); };
    return train_digits(settings_.training, data_, resume_, folder_, *communicator_, *log_, hooks);
  }

  int finish(const TrainingResult& result) {
    const int status = result.stopped_by == StopRequest::kPreempt     ? kExitTemporary
                       : result.stopped_by == StopRequest::kInterrupt ? exit_status(ErrorCode::kInterrupted)
                                                                      : kExitOk;
    const EndState state = result.stopped_by == StopRequest::kPreempt     ? EndState::kPreempted
                           : result.stopped_by == StopRequest::kInterrupt ? EndState::kFailed
                                                                          : EndState::kFinished;
    communicator_->leave(kFarewell);  // from here on no rank needs another: each ends its own log
    open_log_ = nullptr;
    const Outcome outcome = log_->finish(state, status);
    if (!outcome.message.empty()) complain("the log: " + outcome.message);
    if (place_.rank == 0) tell_end(result);
    return status;
  }

  void tell_end(const TrainingResult& result) const {
    const std::string where = "step " + std::to_string(result.steps);
    if (result.stopped_by == StopRequest::kPreempt) {
      const std::string run_id = log_->enabled() ? log_->identity().experiment : settings_.run_id;
      say("preempted at " + where + ", state saved; go on with --run_id " + run_id + " --resume");
    } else if (result.stopped_by == StopRequest::kInterrupt) {
      say("interrupted at " + where);
    } else {
      std::cout << "test accuracy " << result.test_accuracy << " after " << result.epochs << " epochs ("
                << result.steps << " steps)\n"
                << "log " << folder_.string() << "\n";
      if (!result.newest_checkpoint.empty()) {
        std::cout << "checkpoint " << (folder_ / result.newest_checkpoint).string() << "\n";
      }
      std::cout.flush();
    }
  }

  // The others are told, the log is closed as failed. Threads of a broken process group may still wait for
  // ranks that are gone, so the process does not try to take itself apart.
  [[noreturn]] void give_up(const std::string& what, int status) {
    complain(what);
    if (communicator_) communicator_->report_failure(what);
    if (Writer* log = open_log_.exchange(nullptr)) log->finish(EndState::kFailed, status, kFarewell);
    if (communicator_) communicator_->leave(kFarewell);
    end_process(status);
  }

  // On the communicator's own thread, while this rank's is stuck.
  [[noreturn]] void end_stuck(const std::string& why) {
    complain(why);
    if (Writer* log = open_log_.exchange(nullptr)) log->finish(EndState::kFailed, kExitFailed, kFarewell);
    end_process(kExitFailed);
  }

  [[noreturn]] static void end_process(int status) {
    std::cout.flush();
    std::cerr.flush();
    std::_Exit(status);
  }

  void complain(const std::string& what) const {
    const std::string who = place_.world_size > 1 ? "rank " + std::to_string(place_.rank) + ": " : "";
    say(who + what);
  }

  // One write a line, so that lines of several ranks do not mix.
  static void say(const std::string& line) { std::cerr << "ranklog-train: " + line + "\n"; }

  const Settings& settings_;
  const EnvLookup& environment_;
  const Place place_;
  DigitsSplit data_;
  std::unique_ptr<Communicator> communicator_;
  ResumePlan resume_;
  std::filesystem::path folder_;  // the experiment's
  std::optional<Writer> log_;
  std::atomic<Writer*> open_log_{nullptr};  // set while log_ may be written to by another thread
};

}  // namespace

int run_worker(const Settings& settings, const EnvLookup& environment) {
  return Worker(settings, environment).run();
}

}  // namespace ranklog
