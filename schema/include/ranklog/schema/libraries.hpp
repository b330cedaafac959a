#pragma once
// What this process writes files with.

#include <string>

namespace ranklog {

// JSON object, library name -> version: ranklog's own, and those of SQLite and zstd as they are loaded now,
// which need not be those that ranklog was built with.
[[nodiscard]] std::string library_versions_json();

}  // namespace ranklog
