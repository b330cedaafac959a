#pragma once
// Which experiment this launch writes to: a new one, the one it continues, or a sibling of an id that was
// used before. Every rank of a launch must come to the same answer: by being told, or by rules that depend on
// nothing but what earlier launches left behind.

#include <filesystem>
#include <string>

#include "settings.hpp"

namespace ranklog::writer {

struct LaunchChoice {
  std::string experiment;
  std::string token;  // equal for all ranks of this launch
  bool resumed = false;
  std::filesystem::path folder;
};

// Creates the folder. Throws Error: kUsage (several ranks and no id; an id or token that this rank has used
// already), kNotFound (an experiment to resume that is not there), kIo.
[[nodiscard]] LaunchChoice choose_launch(const Settings& settings);

}  // namespace ranklog::writer
