#pragma once
// manifest.json as text.

#include <string>
#include <string_view>

#include "ranklog/trainer/checkpoint_folder.hpp"

namespace ranklog {

inline constexpr char kManifestName[] = "manifest.json";
inline constexpr int kCheckpointFormat = 1;

[[nodiscard]] std::string write_manifest(const CheckpointManifest& manifest);
// Throws Error (kDamaged, kVersion); the message lacks the file's name.
[[nodiscard]] CheckpointManifest parse_manifest(std::string_view text);

}  // namespace ranklog
