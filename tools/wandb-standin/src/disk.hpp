#pragma once
// Files of the state folder. What goes wrong is thrown as ranklog::Error naming the path.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api_error.hpp"

namespace ranklog::standin {

namespace fs = std::filesystem;

// Creates the folder above as well. A reader sees the old text or the new one.
void write_text(const fs::path& path, std::string_view text);
void write_json(const fs::path& path, const Json& json);
// Empty if there is no such file.
[[nodiscard]] std::optional<std::string> read_text(const fs::path& path);
[[nodiscard]] std::optional<Json> read_json(const fs::path& path);
void make_folder(const fs::path& path);
void move_file(const fs::path& from, const fs::path& to);
// The parts of a file name inside a run or artifact, each safe on disk. Throws ApiError(400) for a name that
// is absolute, empty or climbs out.
[[nodiscard]] fs::path safe_relative_path(const std::string& name);
// The names that safe_relative_path() made the files below `folder` from, sorted.
[[nodiscard]] std::vector<std::string> decoded_names_below(const fs::path& folder);

}  // namespace ranklog::standin
