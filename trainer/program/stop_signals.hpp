#pragma once
// SIGTERM and SIGUSR1 ask for preemption, SIGINT for an end; all after the running step.

#include "ranklog/trainer/training.hpp"

namespace ranklog {

// From now on. A second Ctrl-C ends the process at once.
void catch_stop_signals();

[[nodiscard]] StopRequest stop_requested() noexcept;

}  // namespace ranklog
