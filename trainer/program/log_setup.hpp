#pragma once
// How ranklog-train opens its log, and what it says there about the run.

#include "ranklog/trainer/training.hpp"
#include "settings.hpp"

namespace ranklog {

// Everything but the choice of the experiment and the step to resume at.
[[nodiscard]] Options log_options(const Settings& settings, const Place& place);

void describe_run(Writer& log, const Settings& settings, const Place& place, const DigitsSplit& data);

}  // namespace ranklog
