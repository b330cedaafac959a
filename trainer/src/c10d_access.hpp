#pragma once
// The process group behind a communicator, for what only c10d does: reducing gradients during backward.

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "ranklog/trainer/communicator.hpp"

namespace ranklog {

// Null for a communicator that is not c10d's.
[[nodiscard]] c10::intrusive_ptr<c10d::ProcessGroup> process_group_of(Communicator& communicator);

// What happened when a collective of the process group threw `what`: an Error (kTimeout) that names the ranks
// that are gone or failed. Tells the others, too.
[[nodiscard]] Error explain_broken_collective(Communicator& communicator, const std::string& what);

}  // namespace ranklog
