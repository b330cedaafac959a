#include "upload_state.hpp"

#include "lock_file.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"
#include "sqlite_handles.hpp"

namespace ranklog::sync {
namespace {

namespace fs = std::filesystem;

constexpr int kReadWrite = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
constexpr int kReadOnly = SQLITE_OPEN_READONLY;

constexpr const char* kSchema = R"(
PRAGMA journal_mode = DELETE;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs(
  run_id TEXT PRIMARY KEY, recipe TEXT NOT NULL, entity TEXT NOT NULL, project TEXT NOT NULL,
  storage_id TEXT NOT NULL, header_hash TEXT NOT NULL, summary_hash TEXT NOT NULL, finish TEXT NOT NULL,
  done TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches(
  run_id TEXT NOT NULL, first_line INTEGER NOT NULL, lines INTEGER NOT NULL, sha256 TEXT NOT NULL,
  confirmed INTEGER NOT NULL, PRIMARY KEY(run_id, first_line)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files(
  run_id TEXT NOT NULL, name TEXT NOT NULL, md5 TEXT NOT NULL, PRIMARY KEY(run_id, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS artifacts(
  client_id TEXT PRIMARY KEY, name TEXT NOT NULL, artifact_id TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS links(
  client_id TEXT NOT NULL, run_id TEXT NOT NULL, PRIMARY KEY(client_id, run_id)) WITHOUT ROWID;
)";

constexpr const char* kStateFormat = "1";

void make_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    throw Error(ErrorCode::kIo,
                "the upload state cannot be kept in " + folder.string() + ": " + failed.message(),
                "name a folder that can be written to with --state-dir");
  }
}

std::string meta_value(const Connection& connection, std::string_view key) {
  Statement query(connection, "SELECT value FROM meta WHERE key = ?");
  return query.bind(key).step() ? query.text(0) : "";
}

void set_meta(const Connection& connection, std::string_view key, std::string_view value) {
  Statement(connection, "INSERT OR REPLACE INTO meta VALUES(?, ?)").bind(key).bind(value).run();
}

// Opens, creates and checks; throws Error (kDamaged) for what SQLite cannot read.
Connection open_state(const fs::path& path) {
  Connection connection(path, kReadWrite);
  connection.execute(kSchema);
  const std::string format = meta_value(connection, "format");
  if (!format.empty() && format != kStateFormat) {
    throw Error(ErrorCode::kVersion, path.string() + " is an upload state of format " + format,
                "use the wandb-sync that wrote it, or a newer one");
  }
  return connection;
}

Connection open_or_replace(const fs::path& path) {
  try {
    return open_state(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
  }
  fs::rename(path, path.string() + ".damaged");
  return open_state(path);
}

}  // namespace

struct UploadState::Impl {
  Impl(const fs::path& path) : lock(path.string() + ".lock"), connection(open_or_replace(path)) {}

  LockFile lock;
  std::mutex mutex;
  Connection connection;  // guarded by mutex
};

UploadState::UploadState(const fs::path& path, const Destination& destination, bool default_entity) {
  make_folder(path.parent_path());
  impl_ = std::make_unique<Impl>(path);
  Transaction transaction(impl_->connection);
  set_meta(impl_->connection, "format", kStateFormat);
  set_meta(impl_->connection, "server", destination.server);
  set_meta(impl_->connection, "entity", destination.entity);
  set_meta(impl_->connection, "project", destination.project);
  if (default_entity) set_meta(impl_->connection, "default_entity", "1");
  transaction.commit();
}

UploadState::~UploadState() = default;

std::optional<RunRecord> UploadState::run(std::string_view run_id) {
  const std::lock_guard lock(impl_->mutex);
  Statement query(
      impl_->connection,
      "SELECT run_id, recipe, entity, project, storage_id, header_hash, summary_hash, finish, done "
      "FROM runs WHERE run_id = ?");
  if (!query.bind(run_id).step()) return std::nullopt;
  return RunRecord{query.text(0), query.text(1), query.text(2), query.text(3), query.text(4),
                   query.text(5), query.text(6), query.text(7), query.text(8)};
}

void UploadState::save_run(const RunRecord& record, const std::map<std::string, std::string>& md5_by_name) {
  const std::lock_guard lock(impl_->mutex);
  Transaction transaction(impl_->connection);
  Statement insert(impl_->connection, "INSERT OR REPLACE INTO runs VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(record.run_id).bind(record.recipe).bind(record.entity).bind(record.project);
  insert.bind(record.storage_id).bind(record.header_hash).bind(record.summary_hash);
  insert.bind(record.finish).bind(record.done).run();
  for (const auto& [name, md5] : md5_by_name) {
    Statement file(impl_->connection, "INSERT OR REPLACE INTO files VALUES(?, ?, ?)");
    file.bind(record.run_id).bind(name).bind(md5).run();
  }
  transaction.commit();
}

std::vector<BatchRecord> UploadState::batches(std::string_view run_id) {
  const std::lock_guard lock(impl_->mutex);
  Statement query(
      impl_->connection,
      "SELECT first_line, lines, sha256, confirmed FROM batches WHERE run_id = ? ORDER BY first_line");
  query.bind(run_id);
  std::vector<BatchRecord> found;
  while (query.step()) {
    found.push_back({static_cast<std::uint64_t>(query.number(0)), static_cast<std::uint64_t>(query.number(1)),
                     query.text(2), query.number(3) != 0});
  }
  return found;
}

void UploadState::save_batch(std::string_view run_id, const BatchRecord& batch) {
  const std::lock_guard lock(impl_->mutex);
  Transaction transaction(impl_->connection);
  Statement insert(impl_->connection, "INSERT OR REPLACE INTO batches VALUES(?, ?, ?, ?, ?)");
  insert.bind(run_id).bind(static_cast<std::int64_t>(batch.first_line));
  insert.bind(static_cast<std::int64_t>(batch.lines)).bind(batch.sha256);
  insert.bind(std::int64_t{batch.confirmed}).run();
  Statement(impl_->connection, "UPDATE runs SET finish = '', done = '' WHERE run_id = ?").bind(run_id).run();
  transaction.commit();
}

void UploadState::drop_batch(std::string_view run_id, std::uint64_t first_line) {
  const std::lock_guard lock(impl_->mutex);
  Statement remove(impl_->connection,
                   "DELETE FROM batches WHERE run_id = ? AND first_line = ? AND NOT confirmed");
  remove.bind(run_id).bind(static_cast<std::int64_t>(first_line)).run();
}

std::string UploadState::file_md5(std::string_view run_id, std::string_view name) {
  const std::lock_guard lock(impl_->mutex);
  Statement query(impl_->connection, "SELECT md5 FROM files WHERE run_id = ? AND name = ?");
  return query.bind(run_id).bind(name).step() ? query.text(0) : "";
}

std::string UploadState::artifact_id(std::string_view client_id) {
  const std::lock_guard lock(impl_->mutex);
  Statement query(impl_->connection, "SELECT artifact_id FROM artifacts WHERE client_id = ?");
  return query.bind(client_id).step() ? query.text(0) : "";
}

void UploadState::save_artifact(std::string_view client_id, std::string_view name,
                                std::string_view artifact_id) {
  const std::lock_guard lock(impl_->mutex);
  Statement(impl_->connection, "INSERT OR REPLACE INTO artifacts VALUES(?, ?, ?)")
      .bind(client_id)
      .bind(name)
      .bind(artifact_id)
      .run();
}

bool UploadState::is_linked(std::string_view client_id, std::string_view run_id) {
  const std::lock_guard lock(impl_->mutex);
  Statement query(impl_->connection, "SELECT 1 FROM links WHERE client_id = ? AND run_id = ?");
  return query.bind(client_id).bind(run_id).step();
}

void UploadState::save_link(std::string_view client_id, std::string_view run_id) {
  const std::lock_guard lock(impl_->mutex);
  Statement(impl_->connection, "INSERT OR REPLACE INTO links VALUES(?, ?)")
      .bind(client_id)
      .bind(run_id)
      .run();
}

fs::path state_path(const fs::path& folder, const Destination& destination) {
  constexpr std::size_t kDigits = 16;
  const std::string key = destination.server + '\n' + destination.entity + '\n' + destination.project;
  return folder / (sha256_hex(key).substr(0, kDigits) + ".db");
}

std::string known_default_entity(const fs::path& folder, const std::string& server,
                                 const std::string& project) {
  std::string found;
  std::error_code missing;
  for (fs::directory_iterator entry(folder, missing), end; !missing && entry != end;
       entry.increment(missing)) {
    if (entry->path().extension() != ".db") continue;
    try {
      const Connection connection(entry->path(), kReadOnly);
      if (meta_value(connection, "server") != server || meta_value(connection, "project") != project)
        continue;
      if (meta_value(connection, "default_entity") != "1") continue;
      if (!found.empty()) return "";
      found = meta_value(connection, "entity");
    } catch (const Error&) {
      continue;  // not a state that can be read: the server is asked instead
    }
  }
  return found;
}

std::string done_fingerprint(const fs::path& state_file, const std::string& run_id) {
  std::error_code ignored;
  if (!fs::exists(state_file, ignored)) return "";
  try {
    const Connection connection(state_file, kReadOnly);
    Statement query(connection, "SELECT done FROM runs WHERE run_id = ?");
    return query.bind(run_id).step() ? query.text(0) : "";
  } catch (const Error&) {
    return "";
  }
}

}  // namespace ranklog::sync
