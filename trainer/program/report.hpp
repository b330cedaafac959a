#pragma once
// What ranklog-train says: progress and errors on stderr, rank 0's result on stdout.

#include <string>

#include "ranklog/trainer/training.hpp"

namespace ranklog {

// One write a line, so that lines of several ranks do not mix.
void say(const std::string& line);
// With the rank, where there are several.
void complain(const Place& place, const std::string& what);

void tell_start(const Place& place, const AttemptPlan& plan, const DigitsSplit& data);
// The accuracy, where the log and the newest checkpoint are. logged: whether there is a log to be named.
void tell_result(const TrainingResult& result, const std::filesystem::path& folder, bool logged);
void tell_stop(const TrainingResult& result, const std::string& experiment);

}  // namespace ranklog
