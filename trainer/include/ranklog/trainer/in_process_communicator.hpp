#pragma once
// Ranks that are threads of one process: for tests, and for a job of one rank.

#include <chrono>
#include <memory>
#include <vector>

#include "ranklog/trainer/communicator.hpp"

namespace ranklog {

// One communicator a rank; each is used by one thread and may outlive the others.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_in_process_communicators(
    int size, std::chrono::milliseconds timeout);

}  // namespace ranklog
