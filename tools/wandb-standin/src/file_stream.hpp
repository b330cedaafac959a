#pragma once
// The effect of one file_stream request on a run.

#include "run.hpp"

namespace ranklog::standin {

// Lines go where their offsets say, `complete` and `exitcode` end the run, anything else revives it.
// Throws ApiError(400) for a body that is not of the protocol's shape; then nothing has changed.
void apply_file_stream(Run& run, const Json& body, long long now_ms);

}  // namespace ranklog::standin
