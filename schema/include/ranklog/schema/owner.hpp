#pragma once
// Whose a rank file is: only the process that created it ever writes to it.

#include <cstdint>
#include <string>

#include "ranklog/schema/rank_file.hpp"

namespace ranklog {

enum class OwnerState : std::uint8_t {
  kEnded,    // it has ended the file
  kGone,     // no process of this host has that pid and start time
  kRunning,  // one has; or it is another host's, and the file changed within ten minutes
  kSilent,   // another host's, and the file has not changed for longer
};
[[nodiscard]] OwnerState owner_state(const FileInfo& info, std::int64_t now_ns);

// "pid 4711 on node7, started 2026-03-01T10:00:00Z, still running"
[[nodiscard]] std::string describe_owner(const FileInfo& info, std::int64_t now_ns);

}  // namespace ranklog
