#pragma once
// Files of artifacts: brought into the experiment's folder where needed, and digested.

#include <filesystem>
#include <optional>
#include <string>

#include "ranklog/schema/records.hpp"

namespace ranklog::writer {

// Relative to the experiment's folder, if the file lies inside it.
[[nodiscard]] std::optional<std::string> path_inside(const std::filesystem::path& folder,
                                                     const std::filesystem::path& file);

// A file inside `folder` is recorded where it is; another is copied to files/<sha256>, each content once, and
// is durable afterwards. Throws Error (kNotFound, kIo; kUsage for a folder).
[[nodiscard]] ArtifactFile capture_file(const std::filesystem::path& folder,
                                        const std::filesystem::path& file, std::string name);

}  // namespace ranklog::writer
