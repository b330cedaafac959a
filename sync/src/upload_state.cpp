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
CREATE TABLE IF NOT EXISTS runs(
  run_id TEXT PRIMARY KEY, recipe TEXT NOT NULL, entity TEXT NOT NULL, project TEXT NOT NULL,
  storage_id TEXT NOT NULL, header TEXT NOT NULL, summary_hash TEXT NOT NULL, finish TEXT NOT NULL,
  done TEXT NOT NULL, config_hash TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches(
  run_id TEXT NOT NULL, first_line INTEGER NOT NULL, lines INTEGER NOT NULL, sha256 TEXT NOT NULL,
  confirmed INTEGER NOT NULL, PRIMARY KEY(run_id, first_line)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS left_out(
  run_id TEXT NOT NULL, step INTEGER NOT NULL, PRIMARY KEY(run_id, step)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS generations(planned_id TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files(
  run_id TEXT NOT NULL, name TEXT NOT NULL, md5 TEXT NOT NULL, PRIMARY KEY(run_id, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS artifacts(
  client_id TEXT PRIMARY KEY, name TEXT NOT NULL, artifact_id TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS links(
  client_id TEXT NOT NULL, run_id TEXT NOT NULL, PRIMARY KEY(client_id, run_id)) WITHOUT ROWID;
)";

constexpr const char* kStateFormat = "2";

// From format 1. What its header_hash stood for is sent once more.
constexpr const char* kFromFormat1 = R"(
ALTER TABLE runs RENAME COLUMN header_hash TO header;
ALTER TABLE runs ADD COLUMN config_hash TEXT NOT NULL DEFAULT '';
UPDATE runs SET header = '';
ALTER TABLE artifacts ADD COLUMN description TEXT NOT NULL DEFAULT '';
)";

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

// Damage that opening does not run into would come up in the middle of a push, with lines on their way.
void check_pages(const Connection& connection, const fs::path& path) {
  Statement check(connection, "PRAGMA quick_check(1)");
  const std::string found = check.step() ? check.text(0) : "no answer";
  if (found != "ok") throw Error(ErrorCode::kDamaged, path.string() + ": " + found);
}

// Opens, creates and checks; throws Error (kDamaged) for what SQLite cannot read.
Connection open_state(const fs::path& path) {
  Connection connection(path, kReadWrite);
  connection.execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL");
  check_pages(connection, path);
  Transaction transaction(connection);
  connection.execute(
      "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID");
  const std::string format = meta_value(connection, "format");
  if (format == "1") connection.execute(kFromFormat1);
  if (!format.empty() && format != "1" && format != kStateFormat) {
    throw Error(ErrorCode::kVersion, path.string() + " is an upload state of format " + format,
                "use the wandb-sync that wrote it, or a newer one");
  }
  connection.execute(kSchema);
  set_meta(connection, "format", kStateFormat);
  transaction.commit();
  return connection;
}

// The journal of a damaged file goes with it: SQLite would play it back into the new one.
void set_aside(const fs::path& path) {
  for (const char* suffix : {"", "-journal"}) {
    const fs::path from = path.string() + suffix;
    std::error_code failed;
    if (!fs::exists(from, failed)) continue;
    fs::rename(from, path.string() + ".damaged" + suffix, failed);
    if (failed) {
      throw Error(ErrorCode::kIo, from.string() + " is damaged and cannot be set aside: " + failed.message(),
                  "move it away, or name another folder with --state-dir");
    }
  }
}

Connection open_or_replace(const fs::path& path) {
  try {
    return open_state(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
  }
  set_aside(path);
  return open_state(path);
}

// What `read` finds in a state file that may be missing, damaged or in use; empty: nothing.
template <typename Read>
auto peek(const fs::path& state_file, Read read)
    -> std::optional<decltype(read(std::declval<Connection&>()))> {
  std::error_code ignored;
  if (!fs::exists(state_file, ignored)) return std::nullopt;
  try {
    Connection connection(state_file, kReadOnly);
    return read(connection);
  } catch (const Error&) {
    return std::nullopt;
  }
}

int read_generation(const Connection& connection, std::string_view planned_id) {
  Statement query(connection, "SELECT number FROM generations WHERE planned_id = ?");
  return query.bind(planned_id).step() ? static_cast<int>(query.number(0)) : 1;
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
      "SELECT run_id, recipe, entity, project, storage_id, header, config_hash, summary_hash, finish, "
      "done "
      "FROM runs WHERE run_id = ?");
  if (!query.bind(run_id).step()) return std::nullopt;
  return RunRecord{query.text(0), query.text(1), query.text(2), query.text(3), query.text(4),
                   query.text(5), query.text(6), query.text(7), query.text(8), query.text(9)};
}

void UploadState::save_run(const RunRecord& record, const std::map<std::string, std::string>& md5_by_name) {
  const std::lock_guard lock(impl_->mutex);
  Transaction transaction(impl_->connection);
  Statement insert(impl_->connection,
                   "INSERT OR REPLACE INTO runs(run_id, recipe, entity, project, storage_id, header, "
                   "config_hash, summary_hash, finish, done) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(record.run_id).bind(record.recipe).bind(record.entity).bind(record.project);
  insert.bind(record.storage_id).bind(record.header).bind(record.config_hash).bind(record.summary_hash);
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

std::set<std::int64_t> UploadState::left_out(std::string_view run_id) {
  const std::lock_guard lock(impl_->mutex);
  Statement query(impl_->connection, "SELECT step FROM left_out WHERE run_id = ?");
  query.bind(run_id);
  std::set<std::int64_t> steps;
  while (query.step()) steps.insert(query.number(0));
  return steps;
}

void UploadState::leave_out(std::string_view run_id, std::optional<std::uint64_t> first_line,
                            std::int64_t step) {
  const std::lock_guard lock(impl_->mutex);
  Transaction transaction(impl_->connection);
  Statement insert(impl_->connection, "INSERT OR REPLACE INTO left_out VALUES(?, ?)");
  insert.bind(run_id).bind(step).run();
  if (first_line) {
    Statement remove(impl_->connection,
                     "DELETE FROM batches WHERE run_id = ? AND first_line = ? AND NOT confirmed");
    remove.bind(run_id).bind(static_cast<std::int64_t>(*first_line)).run();
  }
  transaction.commit();
}

int UploadState::generation(std::string_view planned_id) {
  const std::lock_guard lock(impl_->mutex);
  return read_generation(impl_->connection, planned_id);
}

void UploadState::save_generation(std::string_view planned_id, int generation) {
  const std::lock_guard lock(impl_->mutex);
  Statement insert(impl_->connection, "INSERT OR REPLACE INTO generations VALUES(?, ?)");
  insert.bind(planned_id).bind(std::int64_t{generation}).run();
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

std::string UploadState::artifact_description(std::string_view client_id) {
  const std::lock_guard lock(impl_->mutex);
  Statement query(impl_->connection, "SELECT description FROM artifacts WHERE client_id = ?");
  return query.bind(client_id).step() ? query.text(0) : "";
}

void UploadState::save_artifact(std::string_view client_id, std::string_view name,
                                std::string_view artifact_id, std::string_view description) {
  const std::lock_guard lock(impl_->mutex);
  Statement insert(impl_->connection,
                   "INSERT OR REPLACE INTO artifacts(client_id, name, artifact_id, description) "
                   "VALUES(?, ?, ?, ?)");
  insert.bind(client_id).bind(name).bind(artifact_id).bind(description).run();
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

fs::path find_state_folder(const std::vector<fs::path>& folders, const Destination& destination) {
  fs::path found = folders.front();
  std::int64_t most = -1;
  for (const fs::path& folder : folders) {
    const auto lines = peek(state_path(folder, destination), [](const Connection& connection) {
      Statement query(connection, "SELECT ifnull(sum(lines), 0) FROM batches WHERE confirmed");
      return query.step() ? query.number(0) : 0;
    });
    if (!lines || *lines <= most) continue;
    most = *lines;
    found = folder;
  }
  return found;
}

std::string done_fingerprint(const fs::path& state_file, const std::string& run_id) {
  return peek(state_file,
              [&](const Connection& connection) {
                Statement query(connection, "SELECT done FROM runs WHERE run_id = ?");
                return query.bind(run_id).step() ? query.text(0) : std::string();
              })
      .value_or("");
}

int known_generation(const fs::path& state_file, const std::string& planned_id) {
  return peek(state_file,
              [&](const Connection& connection) { return read_generation(connection, planned_id); })
      .value_or(1);
}

}  // namespace ranklog::sync
