#pragma once
// What a plan finds wrong with the files of an experiment, and with several experiments together.

#include <vector>

#include "ranklog/sync/plan.hpp"

namespace ranklog::sync {

// Files that are damaged; those of ranks that make runs are named with their runs, where more is known.
void note_damage(PlannedExperiment& planned);

// Runs whose newest step is held back although their writer is silent.
void note_open_steps(PlannedExperiment& planned);

// Files that could not be opened, each with the experiment that it lies in, and ranks that have no file.
void note_unreadable_files(Plan& plan, const std::vector<ScanProblem>& problems);

// Two experiments in one run would mix their lines: neither gets its runs.
void refuse_shared_runs(Plan& plan);

}  // namespace ranklog::sync
