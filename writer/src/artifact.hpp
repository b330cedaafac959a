#pragma once
// The state behind ArtifactBuilder.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core.hpp"
#include "ranklog/writer/writer.hpp"

namespace ranklog {

namespace writer {

struct PendingFile {
  std::filesystem::path path;
  std::string name;
  std::optional<ArtifactFile> known;  // digests given by the caller, or a reference
  Capture capture = Capture::kCopy;
};

}  // namespace writer

struct ArtifactBuilder::Impl {
  std::shared_ptr<writer::Core> core;  // empty if logging is off
  Artifact artifact;
  std::vector<writer::PendingFile> files;
  bool committed = false;
};

}  // namespace ranklog
