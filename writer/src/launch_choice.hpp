#pragma once
// Which experiment this launch writes to: a new one, the one it continues, or a sibling of an id that was
// used before. Every rank of a launch must come to the same answer: by being told, or by rules that depend on
// nothing but what earlier launches left behind.

#include <filesystem>
#include <string>

#include "settings.hpp"

namespace ranklog::writer {

// Throws Error: kUsage (several ranks and no id; an id or token that this rank has used already; nodes that
// are not even where that was taken for granted), kNotFound (an experiment to resume that is not there), kIo.
[[nodiscard]] LaunchChoice choose_launch(const Settings& settings);
// For all ranks, by the one that asks; without telling them.
[[nodiscard]] LaunchChoice choose_launch_for_all(const Settings& settings);

[[nodiscard]] std::filesystem::path folder_of(const Settings& settings, const LaunchChoice& choice);

}  // namespace ranklog::writer
