#include "ranklog/schema/captured_file.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog {

std::vector<CapturedFile> captured_files(const RankFile& file) {
  std::vector<CapturedFile> files;
  const auto add = [&](const auto& entry) {
    if (!entry.path.empty()) files.push_back({entry.path, entry.size, entry.md5, entry.sha256});
  };
  for (const Artifact& artifact : file.artifacts()) std::ranges::for_each(artifact.files, add);
  std::ranges::for_each(file.files(), add);
  return files;
}

std::string find_fault(const std::filesystem::path& folder, const CapturedFile& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(folder / file.path, error);
  if (error == std::errc::no_such_file_or_directory) return "it is missing";
  if (error)
    throw Error(ErrorCode::kIo, "cannot read '" + (folder / file.path).string() + "': " + error.message());
  if (size != file.size) {
    return "it has " + std::to_string(size) + " bytes and should have " + std::to_string(file.size);
  }
  const FileDigests found = digest_file(folder / file.path);
  return found.sha256 == file.sha256 ? "" : "its bytes are not those that were logged";
}

void Removals::add(const RankFile& file) {
  for (const Event& event : file.events()) {
    if (event.kind != kCheckpointRemovedEvent) continue;
    const nlohmann::json details = nlohmann::json::parse(event.json, nullptr, false);
    if (!details.is_object() || !details.contains("path") || !details["path"].is_string()) continue;
    if (std::string path = details["path"]; !path.empty()) paths_.insert(std::move(path));
  }
}

bool Removals::took(const std::filesystem::path& folder, const CapturedFile& file) const {
  return covers(file.path) && !find_fault(folder, file).empty();
}

bool Removals::covers(std::string_view path) const {
  for (std::size_t end = path.size(); end != std::string_view::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    if (paths_.contains(path.substr(0, end))) return true;
  }
  return false;
}

}  // namespace ranklog
