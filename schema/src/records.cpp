#include "ranklog/schema/records.hpp"

#include "ranklog/schema/stream.hpp"

namespace ranklog {

// These words are on disk (FORMAT.md, "meta"). Frozen.
std::string_view to_string(EndState state) noexcept {
  switch (state) {
    case EndState::kFinished:
      return "finished";
    case EndState::kFailed:
      return "failed";
    case EndState::kPreempted:
      return "preempted";
  }
  return "failed";
}

std::optional<EndState> parse_end_state(std::string_view text) noexcept {
  for (const EndState state : {EndState::kFinished, EndState::kFailed, EndState::kPreempted}) {
    if (text == to_string(state)) return state;
  }
  return std::nullopt;
}

bool is_reserved_event(std::string_view kind) noexcept {
  return kind.starts_with('_') || kind == kRewindEvent || kind == kDropEvent || kind == kArtifactUseEvent ||
         kind == kArtifactLinkEvent;
}

std::string_view to_string(Stream stream) noexcept {
  switch (stream) {
    case Stream::kHistory:
      return "history";
    case Stream::kSystem:
      return "system";
    case Stream::kConsole:
      return "console";
  }
  return "unknown";
}

}  // namespace ranklog
