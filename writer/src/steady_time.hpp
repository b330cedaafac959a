#pragma once

#include <chrono>

namespace ranklog::writer {

using SteadyTime = std::chrono::steady_clock::time_point;

}  // namespace ranklog::writer
