#pragma once
// Creates the files of one log and everything that stands behind Writer.

#include <memory>

#include "core.hpp"
#include "settings.hpp"

namespace ranklog::writer {

struct OpenLog {
  Identity identity;
  std::filesystem::path path;    // the .db
  std::filesystem::path folder;  // the experiment's
  std::shared_ptr<Core> core;
};

// Throws Error.
[[nodiscard]] OpenLog open_log(const Settings& settings);

}  // namespace ranklog::writer
