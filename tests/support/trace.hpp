#pragma once
// Real histories, as tests/data/traces has them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ranklog/schema/value.hpp"

namespace ranklog::test {

struct TraceRow {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, Value>> values;  // in the source's order
};

// JSON Lines, gzipped or not: {"step": 0, "time": 0.278, "values": {...}}. The time is left out, as a writer
// takes its own.
[[nodiscard]] std::vector<TraceRow> read_trace(const std::filesystem::path& path);

}  // namespace ranklog::test
