#pragma once
// Reading a run's rows back.

#include "run.hpp"

namespace ranklog::standin {

// History lines whose _step is in [min_step, max_step), as the client sent them. More than `samples` of them
// are thinned out evenly, as W&B does; null means no limit.
[[nodiscard]] Json history_lines(const Run& run, const Json& min_step, const Json& max_step,
                                 const Json& samples);
// All lines of a stream, thinned out likewise.
[[nodiscard]] Json stream_lines(const LineFile& lines, const Json& samples);
// One list of row objects a spec {"keys", "samples", ...}: rows that have all the keys.
[[nodiscard]] Json sampled_history(const Run& run, const Json& specs);
// {"keys": {"loss": {"typeCounts": [{"type": "number", "count": 12}], ...}}, "lastStep": 11, "sets": []}
[[nodiscard]] Json history_keys(const Run& run);
// JSON text of a list with the last line, as RunResumeStatus has it.
[[nodiscard]] std::string tail(const LineFile& lines);

}  // namespace ranklog::standin
