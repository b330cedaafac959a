#include <nlohmann/json.hpp>

#include "record_table.hpp"

namespace ranklog::sql {
namespace {

enum Index : int {
  kStep = kPlaceColumns,
  kTime,
  kName,
  kType,
  kAliases,
  kFileCount,
  kSize,
  kDescription,
  kTags,
  kMetadata,
  kFiles,
  kAllAttempts,
};

std::vector<ColumnSpec> columns() {
  return with_place({
      {"step", "INTEGER", "NULL if it belongs to none"},
      {"time", "REAL", "Unix seconds by the clock of the rank's host"},
      {"name", "TEXT", "name of the artifact; each row is one version of it"},
      {"type", "TEXT", "model, dataset ..."},
      {"aliases", "TEXT", "JSON array"},
      {"file_count", "INTEGER", "files in it"},
      {"size", "INTEGER", "bytes of all its files"},
      {"description", "TEXT", "description"},
      {"tags", "TEXT", "JSON array"},
      {"metadata", "TEXT", "JSON object"},
      {"files", "TEXT",
       "JSON array of objects with name, path (in the experiment's folder), size, md5, sha256"},
      all_attempts_column(),
  });
}

Records<Artifact> read(Catalog& catalog, const SourceFile& source, bool all_attempts) {
  const auto open = catalog.open(source);
  if (open == nullptr) return {};
  return hide_if(open->file.artifacts(), [&](const Artifact& artifact) {
    return !all_attempts && artifact.step && open->superseded.covers(artifact.sequence, *artifact.step);
  });
}

std::int64_t size_of(const Artifact& artifact) {
  std::uint64_t size = 0;
  for (const ArtifactFile& file : artifact.files) size += file.size;
  return static_cast<std::int64_t>(size);
}

std::string files_json(const Artifact& artifact) {
  auto list = nlohmann::ordered_json::array();
  for (const ArtifactFile& file : artifact.files) {
    list.push_back({{"name", file.name},
                    {"path", file.path},
                    {"size", file.size},
                    {"md5", file.md5},
                    {"sha256", file.sha256}});
  }
  return list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void column(sqlite3_context* out, int column, const SourceFile& /*source*/, const Artifact& artifact) {
  switch (column) {
    case kStep:
      return result_optional(out, artifact.step);
    case kTime:
      return sqlite3_result_double(out, seconds(artifact.time_ns));
    case kName:
      return result_text(out, artifact.name);
    case kType:
      return result_text(out, artifact.type);
    case kAliases:
      return result_list(out, artifact.aliases);
    case kFileCount:
      return sqlite3_result_int64(out, static_cast<std::int64_t>(artifact.files.size()));
    case kSize:
      return sqlite3_result_int64(out, size_of(artifact));
    case kDescription:
      return result_text(out, artifact.description);
    case kTags:
      return result_list(out, artifact.tags);
    case kMetadata:
      return result_text(out, artifact.metadata_json);
    default:
      return result_text(out, files_json(artifact));
  }
}

}  // namespace

std::unique_ptr<Table> make_artifacts(Catalog& catalog, const ModuleOptions& options) {
  return std::make_unique<RecordTable<Artifact>>(
      columns(), RecordReader<Artifact>{read, column, kAllAttempts}, catalog, options);
}

}  // namespace ranklog::sql
