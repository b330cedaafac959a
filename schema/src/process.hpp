#pragma once
// Whether the process that wrote a file still lives.

#include <cstdint>
#include <string_view>

namespace ranklog {

// True only if that is certain: `host` is this host, and no process here has that pid and start time
// (field 22 of /proc/<pid>/stat).
[[nodiscard]] bool is_gone_from_this_host(std::string_view host, std::int64_t pid, std::uint64_t start_ticks);

}  // namespace ranklog
