#pragma once
// What a writer records besides rows: each call becomes one operation, which goes through the tail like a row
// and ends up in the database's tables. JSON is the form in the tail only.

#include <cstdint>
#include <string>
#include <variant>

#include "ranklog/schema/records.hpp"

namespace ranklog {

using OperationBody = std::variant<ConfigEntry, MetricDefinition, SummaryOverride, Event, Artifact, RunFile>;

struct Operation {
  std::uint64_t sequence = 0;  // from the same count as rows
  std::int64_t time_ns = 0;    // Unix
  OperationBody body;          // sequence and time inside a body are taken from here
};

}  // namespace ranklog
