#pragma once
// One rank of a job, from meeting the others to the end of its log.

#include "ranklog/writer/launch.hpp"
#include "settings.hpp"

namespace ranklog {

// Returns the exit status. Prints errors on stderr and, on rank 0, progress there and the result on stdout.
[[nodiscard]] int run_worker(const Settings& settings, const EnvLookup& environment);

}  // namespace ranklog
