#include "artifact.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "capture.hpp"
#include "json_rows.hpp"
#include "signals.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using writer::PendingFile;

[[noreturn]] void refuse(const Artifact& artifact, const std::string& what) {
  throw Error(ErrorCode::kUsage, "artifact " + artifact.name + ": " + what);
}

bool is_relative_name(std::string_view name) {
  for (;;) {
    const auto part = name.substr(0, name.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == name.size()) return true;
    name.remove_prefix(part.size() + 1);
  }
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void check(const Artifact& artifact, const std::vector<PendingFile>& files) {
  if (artifact.name.empty() || artifact.type.empty()) refuse(artifact, "it needs a name and a type");
  if (files.empty()) refuse(artifact, "it has no files");
  if (!writer::is_json_object(artifact.metadata_json)) {
    refuse(artifact, "its metadata is not a JSON object (NaN and infinities are not JSON)");
  }
  if (artifact.ttl_seconds.value_or(0) < 0) refuse(artifact, "its time to live is negative");
  std::set<std::string_view> names;
  for (const auto& file : files) {
    if (file.known && !file.known->reference.empty() &&
        (file.known->reference.find(':') == std::string::npos || !writer::is_json_object(file.known->json))) {
      refuse(artifact,
             "the reference " + file.known->reference + " is no URL, or its details no JSON object");
    }
    if (!is_relative_name(file.name)) {
      refuse(artifact, "the name '" + file.name + "' of a file in it is not a relative path");
    }
    if (!names.insert(file.name).second) refuse(artifact, "two files in it are named " + file.name);
  }
}

// What stands in the record already; without a path if it is still to be stored.
ArtifactFile known_file(const Artifact& artifact, const fs::path& folder, const PendingFile& file) {
  if (!file.known) {
    ArtifactFile later;
    later.name = file.name;
    return later;
  }
  ArtifactFile known = *file.known;
  if (!known.reference.empty()) return known;
  const auto inside = writer::path_inside(folder, file.path);
  if (!inside) {
    refuse(artifact,
           "the file " + file.path.string() + " was given with digests, but lies outside " + folder.string());
  }
  if (!is_hex(known.md5, 32) || !is_hex(known.sha256, 64)) {
    refuse(artifact, "the digests of " + file.path.string() + " are not lower-case hex of MD5 and SHA-256");
  }
  known.path = *inside;
  return known;
}

// What is left for the worker: which files of the artifact are to be stored.
struct Draft {
  Artifact artifact;
  std::vector<std::pair<std::size_t, writer::TakenFile>> taken;
};

Draft take_files(const Artifact& artifact, const fs::path& folder, const std::vector<PendingFile>& files) {
  Draft draft{artifact, {}};
  draft.artifact.files.clear();
  for (const auto& file : files) {
    draft.artifact.files.push_back(known_file(artifact, folder, file));
    if (!file.known) {
      draft.taken.emplace_back(draft.artifact.files.size() - 1,
                               writer::TakenFile(folder, file.path, file.capture));
    }
  }
  return draft;
}

void require_recorded(LogStatus status, const Artifact& artifact) {
  if (status == LogStatus::kClosed) refuse(artifact, "the log has been finished");
  if (status == LogStatus::kDropped) {
    throw Error(ErrorCode::kIo, "artifact " + artifact.name + " could not be recorded: the queue is full");
  }
}

}  // namespace

ArtifactBuilder::ArtifactBuilder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

ArtifactBuilder& ArtifactBuilder::add_file(const fs::path& path, std::string_view name_in_artifact,
                                           Capture capture) {
  impl_->files.push_back({path,
                          name_in_artifact.empty() ? path.filename().string() : std::string(name_in_artifact),
                          {},
                          capture});
  return *this;
}

ArtifactBuilder& ArtifactBuilder::add_reference(std::string_view url, std::string_view name_in_artifact,
                                                std::uint64_t size, std::string_view json) {
  ArtifactFile known;
  known.name = name_in_artifact;
  known.size = size;
  known.reference = url;
  known.json = json;
  impl_->files.push_back({{}, known.name, known});
  return *this;
}

ArtifactBuilder& ArtifactBuilder::add_digested_file(const fs::path& path, std::string_view name_in_artifact,
                                                    std::uint64_t size, std::string_view md5,
                                                    std::string_view sha256) {
  ArtifactFile known;
  known.name = name_in_artifact.empty() ? path.filename().string() : std::string(name_in_artifact);
  known.size = size;
  known.md5 = md5;
  known.sha256 = sha256;
  impl_->files.push_back({path, known.name, known});
  return *this;
}

// Every version is "latest" until the next one; it is meant without being listed.
ArtifactBuilder& ArtifactBuilder::alias(std::string_view alias) {
  if (alias != "latest") impl_->artifact.aliases.emplace_back(alias);
  return *this;
}

ArtifactBuilder& ArtifactBuilder::tag(std::string_view tag) {
  impl_->artifact.tags.emplace_back(tag);
  return *this;
}

ArtifactBuilder& ArtifactBuilder::description(std::string_view text) {
  impl_->artifact.description = text;
  return *this;
}

ArtifactBuilder& ArtifactBuilder::metadata_json(std::string_view object) {
  impl_->artifact.metadata_json = object;
  return *this;
}

ArtifactBuilder& ArtifactBuilder::step(std::int64_t step) {
  impl_->artifact.step = step;
  return *this;
}

ArtifactBuilder& ArtifactBuilder::ttl(std::chrono::seconds ttl) {
  impl_->artifact.ttl_seconds = ttl.count();
  return *this;
}

void ArtifactBuilder::commit() {
  const auto& core = impl_->core;
  if (!core || core->fork.in_child()) return;
  const writer::FileSizeSignalBlocked no_signal;
  Artifact& artifact = impl_->artifact;
  if (impl_->committed) refuse(artifact, "it has been committed already");
  check(artifact, impl_->files);
  auto draft = std::make_shared<Draft>(take_files(artifact, core->folder, impl_->files));
  // Versions are recorded in the order of their commit().
  if (draft->taken.empty() && !core->worker->is_busy()) {
    require_recorded(core->recorder.record(draft->artifact), artifact);
  } else {
    if (core->recorder.is_closed()) require_recorded(LogStatus::kClosed, artifact);
    const bool added = core->worker->add([core, draft] {
      for (auto& [index, taken] : draft->taken) {
        const writer::StoredFile stored = taken.store();
        ArtifactFile& file = draft->artifact.files[index];
        file.path = stored.path;
        file.size = stored.digests.size;
        file.md5 = stored.digests.md5;
        file.sha256 = stored.digests.sha256;
      }
      require_recorded(core->recorder.record(draft->artifact), draft->artifact);
    });
    if (!added) require_recorded(LogStatus::kClosed, artifact);
  }
  impl_->committed = true;
}

}  // namespace ranklog
