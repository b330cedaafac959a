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

// Throws Error, and then leaves no rank file behind.
[[nodiscard]] OpenLog open_log(const Settings& settings);
// Removes the files of a log that nothing has been written to.
void discard(OpenLog& log) noexcept;

}  // namespace ranklog::writer
