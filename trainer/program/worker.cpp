#include "worker.hpp"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>

#include "log_setup.hpp"
#include "ranklog/trainer/agreement.hpp"
#include "ranklog/trainer/c10d_communicator.hpp"
#include "ranklog/trainer/first_line.hpp"
#include "report.hpp"
#include "statement.hpp"
#include "stop_signals.hpp"

namespace ranklog {
namespace {

constexpr std::chrono::seconds kFarewell{10};

class Worker {
 public:
  Worker(const Settings& settings, const EnvLookup& environment)
      : settings_(settings), environment_(environment), known_(read_place({}, environment)) {
    place_.rank = known_.rank;
    place_.world_size = known_.world_size;
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { std::set_terminate(handler_before_); }

  int run() {
    end_log_on_terminate();
    try {
      meet();
      agree();
      plan();
      if (const auto complete = find_complete()) return finish_complete(*complete);
      catch_stop_signals();
      open_log();
      const TrainingResult result = train();
      return finish(result);
    } catch (const Error& e) {
      give_up(e.what(), exit_status(e.code()));
    } catch (const std::exception& e) {
      give_up(first_line(e.what()), kExitFailed);
    } catch (...) {
      give_up("an exception of an unknown kind", kExitFailed);
    }
  }

 private:
  // A data file that is not there, or holds something else, is the user's to correct.
  [[nodiscard]] Digits read_data() const {
    try {
      return read_digits(settings_.data);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kNotFound) throw;
      throw Error(ErrorCode::kUsage, e.what());
    }
  }

  void meet() {
    if (settings_.resume && settings_.run_id.empty() && !resolve_launch(environment_).experiment) {
      throw Error(ErrorCode::kUsage, "--resume needs to know which run",
                  "name it with --run_id or RANKLOG_RUN_ID");
    }
    data_ = split_digits(read_data());
    statement_ = make_statement(settings_, known_, data_, environment_);
    Rendezvous rendezvous = read_rendezvous(place_, environment_);
    rendezvous.timeout = settings_.timeout;
    rendezvous.when_stuck = [this](const std::string& why) { end_stuck(why); };
    communicator_ = connect(rendezvous);
  }

  void agree() {
    const std::vector<RankStatement> by_rank = exchange_statements(statement_, *communicator_);
    require_equal_settings(by_rank);
    place_ = settle_places(by_rank).at(static_cast<std::size_t>(place_.rank));
    for (const RankStatement& rank : by_rank) restarted_ = restarted_ || rank.restarts > 0;
  }

  // Whatever can be refused is refused here, on every rank: before there is a log that could tell of an
  // attempt.
  void plan() {
    plan_ =
        plan_attempt(log_options(settings_, place_), {settings_.resume_wish(), restarted_}, *communicator_);
    check_training(settings_.training, data_, plan_.resume, *communicator_);
    communicator_->barrier("settings checked", settings_.timeout);
  }

  // An attempt that has nothing to add needs no log.
  [[nodiscard]] std::optional<TrainingResult> find_complete() {
    if (!plan_.resume.unrecorded.empty()) return std::nullopt;
    return completed_training(settings_.training, data_, plan_.resume, *communicator_);
  }

  int finish_complete(const TrainingResult& result) {
    communicator_->leave(kFarewell);
    if (place_.rank == 0) {
      say("run " + plan_.choice.experiment + " is already complete; raise --epochs to train on");
      tell_result(result, plan_.folder, false);
    }
    return kExitOk;
  }

  void open_log() {
    Options options = log_options(settings_, place_);
    options.choice = plan_.choice;
    if (plan_.choice.resumed) options.resume_step = plan_.resume.step;
    log_.emplace(Writer::open(options));
    open_log_ = &*log_;
    describe_run(*log_, settings_, place_, data_);
    if (place_.rank == 0) tell_start(place_, plan_, data_);
  }

  TrainingResult train() {
    TrainingHooks hooks;
    hooks.stop_requested = stop_requested;
    hooks.progress = say;
    return train_digits(settings_.training, data_, plan_.resume, plan_.folder, *communicator_, *log_, hooks);
  }

  int finish(const TrainingResult& result) {
    const bool preempted = result.stopped_by == StopRequest::kPreempt;
    const bool interrupted = result.stopped_by == StopRequest::kInterrupt;
    const int status = preempted     ? kExitTemporary
                       : interrupted ? exit_status(ErrorCode::kInterrupted)
                                     : kExitOk;
    const EndState state = preempted     ? EndState::kPreempted
                           : interrupted ? EndState::kFailed
                                         : EndState::kFinished;
    communicator_->leave(kFarewell);  // from here on no rank needs another: each ends its own log
    open_log_ = nullptr;
    const Outcome outcome = log_->finish(state, status);
    if (!outcome.message.empty()) complain(place_, "the log: " + outcome.message);
    if (place_.rank != 0) return status;
    if (preempted || interrupted) {
      tell_stop(result, plan_.choice.experiment);
    } else {
      tell_result(result, plan_.folder, log_->enabled());
    }
    return status;
  }

  // The others are told, the log is closed as failed. Threads of a broken process group may still wait for
  // ranks that are gone, so the process does not try to take itself apart.
  [[noreturn]] void give_up(const std::string& what, int status) {
    complain(place_, what);
    if (communicator_) communicator_->report_failure(what);
    end_log(status);
    if (communicator_) communicator_->leave(kFarewell);
    end_process(status);
  }

  // On the communicator's own thread, while this rank's is stuck.
  [[noreturn]] void end_stuck(const std::string& why) {
    complain(place_, why);
    end_log(kExitFailed);
    end_process(kExitFailed);
  }

  void end_log(int status) {
    if (Writer* log = open_log_.exchange(nullptr)) log->finish(EndState::kFailed, status, kFarewell);
  }

  // LibTorch and Gloo have threads of their own; what they throw there reaches no handler of ours.
  void end_log_on_terminate() {
    terminating = this;
    handler_before_ = std::set_terminate([] {
      std::string what = "ended by the C++ runtime without an exception";
      try {
        if (const auto current = std::current_exception()) std::rethrow_exception(current);
      } catch (const std::exception& e) {
        what = first_line(e.what());
      } catch (...) {
        what = "an exception of an unknown kind on a thread of a library";
      }
      terminating->end_stuck(what);
    });
  }

  [[noreturn]] static void end_process(int status) {
    std::cout.flush();
    std::cerr.flush();
    std::_Exit(status);
  }

  static inline Worker* terminating = nullptr;
  std::terminate_handler handler_before_ = std::get_terminate();

  const Settings& settings_;
  const EnvLookup& environment_;
  const KnownPlace known_;
  Place place_;  // rank and world size from the start, the rest once the ranks have agreed
  bool restarted_ = false;
  DigitsSplit data_;
  RankStatement statement_;
  std::unique_ptr<Communicator> communicator_;
  AttemptPlan plan_;
  std::optional<Writer> log_;
  std::atomic<Writer*> open_log_{nullptr};  // set while log_ may be written to by another thread
};

}  // namespace

int run_worker(const Settings& settings, const EnvLookup& environment) {
  return Worker(settings, environment).run();
}

}  // namespace ranklog
