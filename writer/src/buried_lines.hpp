#pragma once
// Console lines of a process that died before it had logged them, added to its log by somebody else.

#include <filesystem>
#include <string_view>
#include <vector>

#include "console_lines.hpp"

namespace ranklog::writer {

// As a tail segment of their own, with sequence numbers above any that the process gave. Only when the
// process is dead. Throws Error (kIo).
void bury_console_lines(const std::filesystem::path& rank_file, int rank, std::string_view launch_token,
                        const std::vector<ConsoleLine>& lines);

}  // namespace ranklog::writer
