#include "ranklog/schema/rank_database.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <type_traits>

#include "chunk_insert.hpp"
#include "compaction.hpp"
#include "lock_probe.hpp"
#include "rank_schema.hpp"
#include "ranklog/schema/owner.hpp"
#include "ranklog/schema/time.hpp"
#include "sqlite.hpp"
#include "write_connection.hpp"

namespace ranklog {
namespace {

// A lock server that is merely busy answers sooner; without locks the file is as safe.
constexpr auto kLockPatience = std::chrono::seconds(10);
// What finish() makes smaller: in memory, and in less than a second.
constexpr std::uint64_t kMostToReclaim = std::uint64_t{32} << 20;

// " and belongs to pid ..."; empty if that cannot be told, as of a file that is just being created.
std::string owner_of(const std::filesystem::path& path) {
  try {
    return " and belongs to " + describe_owner(RankFile::open(path).info(), unix_time_ns());
  } catch (const Error&) {
    return {};
  }
}

// O_EXCL: two writers that found the same free number cannot both have it.
void create_exclusively(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd >= 0) {
    ::close(fd);
    return;
  }
  const int error = errno;
  if (error == EEXIST) {
    throw Error(ErrorCode::kBusy, "'" + path.string() + "' exists already" + owner_of(path) +
                                      ", and is never opened for writing again");
  }
  throw Error(ErrorCode::kIo, "cannot create '" + path.string() + "': " + errno_text(error));
}

std::int64_t as_signed(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

// A file that was removed, or moved away, still takes all that is written; nobody would ever find it.
void require_in_place(Connection& connection, const std::filesystem::path& path) {
  int moved = 0;
  if (sqlite3_file_control(connection.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK) return;
  if (moved == 0) return;
  throw Error(ErrorCode::kIo, "'" + path.string() + "' was removed or replaced while it was written");
}

void record_durability(Connection& connection, const Durability& durability) {
  Statement set_meta = connection.prepare(kSetMeta);
  set_meta.run(kMetaDurability, to_json(durability));
}

Durability with_known_locks(const std::filesystem::path& path, const Durability& wanted) {
  Durability durability = wanted;
  if (!wanted.locks) return durability;
  const LockAnswer answer = probe_locks(path, kLockPatience);
  if (answer.work) return durability;
  durability.locks = false;
  durability.reason = answer.reason;
  if (durability.journal == JournalMode::kWal) durability.journal = JournalMode::kPersist;
  return durability;
}

}  // namespace

struct RankDatabase::Impl {
  Impl(const std::filesystem::path& database, const Durability& wanted)
      : path(database), durability(wanted), connection(connect_for_writing(database, wanted)) {}

  void settle_durability();
  void prepare_statements();
  [[nodiscard]] std::string leave_wal();
  void reclaim_space_if_possible();
  void insert_keys(const std::vector<KeyPath>& keys);
  void insert(const Operation& operation, const ConfigEntry& entry);
  void insert(const Operation& operation, const MetricDefinition& metric);
  void insert(const Operation& operation, const SummaryOverride& entry);
  void insert(const Operation& operation, const Event& event);
  void insert(const Operation& operation, const Artifact& artifact);
  void insert(const Operation& operation, const RunFile& file);

  // What has been committed.
  struct Totals {
    std::int64_t keys = 0;
    std::int64_t chunks = 0;  // the greatest id
    std::uint64_t rows = 0;   // of the history
    std::optional<std::int64_t> last_step;
    std::optional<std::int64_t> rewind_step;  // the smallest

    void add(const RowGroupInfo& chunk);
    void add(const Operation& operation);
  };

  std::filesystem::path path;
  Durability durability;
  Connection connection;
  Statement set_meta, add_key, add_chunk, add_config, add_metric, add_summary, add_event, add_artifact,
      add_artifact_file, add_file;
  ChunkEncoder encoder;
  Totals totals;
};

void RankDatabase::Impl::settle_durability() {
  const Durability settled = settle_journal_mode(connection, path, durability);
  const bool as_written = settled.journal == durability.journal;
  durability = settled;
  if (!as_written) record_durability(connection, settled);
}

void RankDatabase::Impl::prepare_statements() {
  set_meta = connection.prepare(kSetMeta);
  add_key = connection.prepare("INSERT INTO key(id, path) VALUES(?1, ?2)");
  add_chunk = connection.prepare(kInsertChunk);
  add_config = connection.prepare(
      "INSERT INTO config(key, position, json) VALUES(?1, (SELECT count(*) FROM config), ?2) "
      "ON CONFLICT(key) DO UPDATE SET json = excluded.json");
  add_metric = connection.prepare(
      "INSERT INTO metric(name, position, step_metric, hidden, step_sync, summary, goal) "
      "VALUES(?1, (SELECT count(*) FROM metric), ?2, ?3, ?4, ?5, ?6) ON CONFLICT(name) DO UPDATE SET "
      "step_metric = excluded.step_metric, hidden = excluded.hidden, step_sync = excluded.step_sync, "
      "summary = excluded.summary, goal = excluded.goal");
  add_summary = connection.prepare(
      "INSERT INTO summary(key, position, json) VALUES(?1, (SELECT count(*) FROM summary), ?2) "
      "ON CONFLICT(key) DO UPDATE SET json = excluded.json");
  add_event =
      connection.prepare("INSERT INTO event(sequence, time_ns, step, kind, json) VALUES(?1, ?2, ?3, ?4, ?5)");
  add_artifact = connection.prepare(
      "INSERT INTO artifact(sequence, time_ns, name, type, description, step, ttl_seconds, aliases, tags, "
      "metadata) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
  add_artifact_file = connection.prepare(
      "INSERT INTO artifact_file(artifact, position, name, path, size, md5, sha256, reference, json) "
      "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
  add_file = connection.prepare(
      "INSERT INTO file(sequence, time_ns, name, path, size, md5, sha256, kind) "
      "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
}

void RankDatabase::Impl::insert_keys(const std::vector<KeyPath>& keys) {
  std::int64_t id = totals.keys;
  for (const KeyPath& key : keys) add_key.run(id++, key.display());
}

void RankDatabase::Impl::insert(const Operation&, const ConfigEntry& entry) {
  add_config.run(entry.key, entry.json);
}

void RankDatabase::Impl::insert(const Operation&, const MetricDefinition& metric) {
  add_metric.run(metric.name, metric.step_metric, std::int64_t{metric.hidden}, std::int64_t{metric.step_sync},
                 json_of_texts(metric.summary), metric.goal);
}

void RankDatabase::Impl::insert(const Operation&, const SummaryOverride& entry) {
  add_summary.run(entry.key, entry.json);
}

void RankDatabase::Impl::insert(const Operation& operation, const Event& event) {
  add_event.run(as_signed(operation.sequence), operation.time_ns, event.step, event.kind, event.json);
}

void RankDatabase::Impl::insert(const Operation& operation, const Artifact& artifact) {
  const std::int64_t sequence = as_signed(operation.sequence);
  add_artifact.run(sequence, operation.time_ns, artifact.name, artifact.type, artifact.description,
                   artifact.step, artifact.ttl_seconds, json_of_texts(artifact.aliases),
                   json_of_texts(artifact.tags), artifact.metadata_json);
  std::int64_t position = 0;
  for (const ArtifactFile& file : artifact.files) {
    add_artifact_file.run(sequence, position++, file.name, file.path, as_signed(file.size), file.md5,
                          file.sha256, file.reference, file.json);
  }
}

void RankDatabase::Impl::insert(const Operation& operation, const RunFile& file) {
  add_file.run(as_signed(operation.sequence), operation.time_ns, file.name, file.path, as_signed(file.size),
               file.md5, file.sha256, file.kind);
}

void RankDatabase::Impl::Totals::add(const RowGroupInfo& chunk) {
  if (chunk.stream != Stream::kHistory || chunk.rows == 0) return;
  rows += chunk.rows;
  last_step = std::max(last_step.value_or(chunk.max_step), chunk.max_step);
}

void RankDatabase::Impl::Totals::add(const Operation& operation) {
  const auto* event = std::get_if<Event>(&operation.body);
  if (event == nullptr || event->kind != kRewindEvent || !event->step) return;
  rewind_step = std::min(rewind_step.value_or(*event->step), *event->step);
}

RankDatabase::RankDatabase(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RankDatabase::RankDatabase(RankDatabase&&) noexcept = default;
RankDatabase& RankDatabase::operator=(RankDatabase&&) noexcept = default;
RankDatabase::~RankDatabase() = default;

RankDatabase RankDatabase::create(const std::filesystem::path& path, const Identity& identity,
                                  std::int64_t start_time_ns, const Durability& wanted) {
  create_exclusively(path);
  try {
    auto impl = std::make_unique<Impl>(path, with_known_locks(path, wanted));
    // Still with a rollback journal: a reader sees an empty file or all tables, and nothing between.
    Transaction transaction(impl->connection);
    create_tables(impl->connection, identity, start_time_ns);
    record_durability(impl->connection, impl->durability);
    transaction.commit();
    impl->settle_durability();
    impl->prepare_statements();
    return RankDatabase(std::move(impl));
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    throw;
  }
}

const Durability& RankDatabase::durability() const noexcept {
  return impl_->durability;
}

void RankDatabase::commit(const SealBatch& batch) {
  Impl& db = *impl_;
  require_in_place(db.connection, db.path);
  std::vector<EncodedChunk> chunks;
  chunks.reserve(batch.groups.size());
  for (const RowGroup& group : batch.groups) chunks.push_back(encode(group, db.encoder));

  Impl::Totals totals = db.totals;
  Transaction transaction(db.connection);
  db.insert_keys(batch.new_keys);
  totals.keys += static_cast<std::int64_t>(batch.new_keys.size());
  for (const EncodedChunk& chunk : chunks) {
    ranklog::insert(db.add_chunk, ++totals.chunks, chunk);
    totals.add(chunk.info);
  }
  for (const Operation& operation : batch.operations) {
    std::visit([&](const auto& body) { db.insert(operation, body); }, operation.body);
    totals.add(operation);
  }
  db.set_meta.run(kMetaWatermark, as_signed(batch.watermark));
  db.set_meta.run(kMetaHeartbeat, batch.now_ns);
  db.set_meta.run(kMetaDroppedRows, as_signed(batch.dropped_rows));
  db.set_meta.run(kMetaActive, batch.active_ns);
  if (!batch.durability.empty()) db.set_meta.run(kMetaDurability, batch.durability);
  db.set_meta.run(kMetaRows, as_signed(totals.rows));
  db.set_meta.run(kMetaChunks, totals.chunks);
  if (totals.last_step) db.set_meta.run(kMetaLastStep, *totals.last_step);
  if (totals.rewind_step) db.set_meta.run(kMetaRewindStep, *totals.rewind_step);
  transaction.commit();
  db.totals = totals;
}

// Empty if everything is in the database file now, else why it is not.
std::string RankDatabase::Impl::leave_wal() {
  try {
    if (change_journal_mode(connection, JournalMode::kDelete)) return {};
    (void)connection.query_integer("PRAGMA wal_checkpoint(PASSIVE)");  // what readers leave free
    return "another program reads it";
  } catch (const SqliteError& error) {
    return error.what();
  }
}

void RankDatabase::leave_open() {
  const std::string reason = impl_->leave_wal();
  if (reason.empty()) return;
  throw Error(ErrorCode::kIo, "part of '" + impl_->path.string() + "' is still in '" +
                                  impl_->path.filename().string() + "-wal': " + reason);
}

void RankDatabase::merge_small_chunks(std::chrono::steady_clock::time_point deadline) {
  (void)ranklog::merge_small_chunks(impl_->connection, deadline);
}

// A smaller file is a nicety: the end record does not depend on it.
void RankDatabase::Impl::reclaim_space_if_possible() {
  try {
    reclaim_space(connection, kMostToReclaim);
  } catch (const std::exception&) {
    // No room for it, in memory or on the disk: the file is as it was.
  }
}

// Out of WAL mode first, so that the end record reaches the database file itself, and last: a file that says
// that it has ended is complete without a WAL.
void RankDatabase::finish(EndState state, std::optional<int> exit_code, std::int64_t end_time_ns,
                          std::int64_t active_ns) {
  Impl& db = *impl_;
  require_in_place(db.connection, db.path);
  const std::string reason = db.leave_wal();
  if (reason.empty()) db.reclaim_space_if_possible();
  Transaction transaction(db.connection);
  db.set_meta.run(kMetaEndTime, end_time_ns);
  db.set_meta.run(kMetaHeartbeat, end_time_ns);
  db.set_meta.run(kMetaActive, active_ns);
  db.set_meta.run(kMetaEndState, to_string(state));
  if (exit_code) db.set_meta.run(kMetaExitCode, std::int64_t{*exit_code});
  transaction.commit();
  if (reason.empty()) return;
  throw Error(ErrorCode::kBusy,
              "'" + db.path.string() + "' is finished, but part of it is still in '" +
                  db.path.filename().string() + "-wal': " + reason,
              "keep the two files together");
}

}  // namespace ranklog
