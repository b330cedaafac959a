#include "report.hpp"

#include <iostream>

namespace ranklog {

void say(const std::string& line) {
  std::cerr << "ranklog-train: " + line + "\n";
}

void complain(const Place& place, const std::string& what) {
  const std::string who = place.world_size > 1 ? "rank " + std::to_string(place.rank) + ": " : "";
  say(who + what);
}

void tell_start(const Place& place, const AttemptPlan& plan, const DigitsSplit& data) {
  for (const std::string& what : plan.resume.skipped) say("skipping a damaged checkpoint: " + what);
  if (!plan.resume.model_file.empty()) {
    say("resuming at step " + std::to_string(plan.resume.step) + " from " + plan.resume.model_file.string());
  }
  say(std::to_string(place.world_size) + (place.world_size == 1 ? " rank, " : " ranks, ") +
      std::to_string(data.train.size()) + " training and " + std::to_string(data.test.size()) +
      " test images; log: " + plan.folder.string());
}

void tell_result(const TrainingResult& result, const std::filesystem::path& folder, bool logged) {
  std::cout << "test accuracy " << result.test_accuracy << " after " << result.epochs
            << (result.epochs == 1 ? " epoch (" : " epochs (") << result.steps << " steps)\n";
  if (logged) std::cout << "log " << folder.string() << "\n";
  if (!result.newest_checkpoint.empty()) {
    std::cout << "checkpoint " << (folder / result.newest_checkpoint).string() << "\n";
  }
  std::cout.flush();
}

void tell_stop(const TrainingResult& result, const std::string& experiment) {
  const std::string where = "step " + std::to_string(result.steps);
  if (result.stopped_by == StopRequest::kPreempt) {
    say("preempted at " + where + ", state saved; go on with --run_id " + experiment + " --resume");
  } else {
    say("interrupted at " + where);
  }
}

}  // namespace ranklog
