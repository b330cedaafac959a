#pragma once
// Output that nobody may take: a terminal that was stopped, a pipe that is full.

#include <string_view>

#include "steady_time.hpp"

namespace ranklog::writer {

// One line for a person on stderr: "ranklog: <text>". It is left out rather than waited for.
void print_line(std::string_view text) noexcept;

// Text that stdio holds back, for as far as stdout and stderr take it by `deadline`. Where another thread
// holds the stream, that one prints.
void flush_stdio(SteadyTime deadline) noexcept;

}  // namespace ranklog::writer
