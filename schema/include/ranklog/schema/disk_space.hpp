#pragma once
// What a person wants to know when a disk refuses.

#include <cstdint>
#include <filesystem>
#include <string>

namespace ranklog {

// errno_text(), and for want of space what df and ulimit would say: "No space left on device (0 B of 4.0 MiB
// free on the file system of /logs)", "Disk quota exceeded (the file system itself has 80.1 GiB free)". A
// disk that hangs holds up the caller.
[[nodiscard]] std::string disk_error_text(int error_number, const std::filesystem::path& path);

}  // namespace ranklog
