#include "ranklog/schema/rank_database.hpp"

#include <algorithm>
#include <chrono>
#include <type_traits>

#include "chunk_insert.hpp"
#include "compaction.hpp"
#include "new_rank_file.hpp"
#include "rank_schema.hpp"
#include "sqlite.hpp"
#include "write_connection.hpp"

namespace ranklog {
namespace {

// What finish() makes smaller: in memory, and in less than a second.
constexpr std::uint64_t kMostToReclaim = std::uint64_t{32} << 20;

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

}  // namespace

struct RankDatabase::Impl {
  Impl(const std::filesystem::path& database, const Durability& wanted)
      : path(database), durability(wanted), connection(connect_for_writing(database, wanted)) {}

  void settle_durability();
  void prepare_statements();
  [[nodiscard]] std::string leave_wal();
  void reclaim_space_if_possible();

  // What has been committed.
  struct Totals {
    std::uint64_t watermark = 0;
    std::int64_t keys = 0;
    std::int64_t chunks = 0;       // the greatest id
    std::uint64_t rows = 0;        // of the history
    std::uint64_t chunk_rows = 0;  // of all streams
    std::optional<std::int64_t> last_step;
    std::optional<std::int64_t> rewind_step;  // the smallest
    Digests digests;

    void add(const RowGroupInfo& chunk);
    void add(const Operation& operation);
  };

  // A row that is there for good.
  template <class... Values>
  void add_row(Totals& after, Table table, Statement& statement, const Values&... values) {
    after.digests[table] += digest_of_row(values...);
    statement.run(values...);
  }
  void insert_keys(Totals& after, const std::vector<KeyPath>& keys);
  void insert(Totals& after, const Operation& operation, const ConfigEntry& entry);
  void insert(Totals& after, const Operation& operation, const MetricDefinition& metric);
  void insert(Totals& after, const Operation& operation, const SummaryOverride& entry);
  void insert(Totals& after, const Operation& operation, const Event& event);
  void insert(Totals& after, const Operation& operation, const Artifact& artifact);
  void insert(Totals& after, const Operation& operation, const RunFile& file);
  void insert(Totals& after, const SealBatch& batch);
  [[nodiscard]] bool holds_already(const SealBatch& batch);
  void count(Totals& after, const SealBatch& batch);
  void set_state(const Totals& after, const SealBatch& batch);

  std::filesystem::path path;
  Durability durability;
  Connection connection;
  Statement set_meta, add_key, add_chunk, add_config, add_metric, add_summary, add_event, add_artifact,
      add_artifact_file, add_file;
  ChunkEncoder encoder;
  Totals totals;
  // SQLite may fail at the end of a COMMIT whose transaction stands, as when a journal cannot be removed for
  // good.
  bool may_hold_more = false;
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

void RankDatabase::Impl::insert_keys(Totals& after, const std::vector<KeyPath>& keys) {
  for (const KeyPath& key : keys) add_row(after, Table::kKey, add_key, after.keys++, key.display());
}

// Rows of tables that replace others: their digest is made anew when all of a batch are in.
void RankDatabase::Impl::insert(Totals&, const Operation&, const ConfigEntry& entry) {
  add_config.run(entry.key, entry.json);
}

void RankDatabase::Impl::insert(Totals&, const Operation&, const MetricDefinition& metric) {
  add_metric.run(metric.name, metric.step_metric, std::int64_t{metric.hidden}, std::int64_t{metric.step_sync},
                 json_of_texts(metric.summary), metric.goal);
}

void RankDatabase::Impl::insert(Totals&, const Operation&, const SummaryOverride& entry) {
  add_summary.run(entry.key, entry.json);
}

void RankDatabase::Impl::insert(Totals& after, const Operation& operation, const Event& event) {
  add_row(after, Table::kEvent, add_event, as_signed(operation.sequence), operation.time_ns, event.step,
          event.kind, event.json);
}

void RankDatabase::Impl::insert(Totals& after, const Operation& operation, const Artifact& artifact) {
  const std::int64_t sequence = as_signed(operation.sequence);
  add_row(after, Table::kArtifact, add_artifact, sequence, operation.time_ns, artifact.name, artifact.type,
          artifact.description, artifact.step, artifact.ttl_seconds, json_of_texts(artifact.aliases),
          json_of_texts(artifact.tags), artifact.metadata_json);
  std::int64_t position = 0;
  for (const ArtifactFile& file : artifact.files) {
    add_row(after, Table::kArtifactFile, add_artifact_file, sequence, position++, file.name, file.path,
            as_signed(file.size), file.md5, file.sha256, file.reference, file.json);
  }
}

void RankDatabase::Impl::insert(Totals& after, const Operation& operation, const RunFile& file) {
  add_row(after, Table::kFile, add_file, as_signed(operation.sequence), operation.time_ns, file.name,
          file.path, as_signed(file.size), file.md5, file.sha256, file.kind);
}

template <class Body>
bool holds(const SealBatch& batch) {
  return std::ranges::any_of(batch.operations, [](const Operation& operation) {
    return std::holds_alternative<Body>(operation.body);
  });
}

void RankDatabase::Impl::insert(Totals& after, const SealBatch& batch) {
  insert_keys(after, batch.new_keys);
  for (const EncodedChunk& chunk : batch.chunks) {
    ranklog::insert(add_chunk, ++after.chunks, chunk);
    after.add(chunk.info);
  }
  for (const Operation& operation : batch.operations) {
    std::visit([&](const auto& body) { insert(after, operation, body); }, operation.body);
    after.add(operation);
  }
  const auto made_anew = [&](Table table) { after.digests[table] = digest_of_table(connection, table); };
  if (holds<ConfigEntry>(batch)) made_anew(Table::kConfig);
  if (holds<MetricDefinition>(batch)) made_anew(Table::kMetric);
  if (holds<SummaryOverride>(batch)) made_anew(Table::kSummary);
}

// Whether the batch that could not be committed is in the tables after all.
bool RankDatabase::Impl::holds_already(const SealBatch& batch) {
  const bool adds = batch.watermark != totals.watermark || !batch.new_keys.empty() || !batch.chunks.empty();
  if (!may_hold_more || !adds) return false;
  const Meta meta = read_meta(connection);
  const auto keys = totals.keys + static_cast<std::int64_t>(batch.new_keys.size());
  return meta.watermark == batch.watermark &&
         meta.chunks.greatest_id == static_cast<std::uint64_t>(totals.chunks) + batch.chunks.size() &&
         connection.query_integer("SELECT count(*) FROM key") == keys;
}

// What inserting the batch would have made of `after`.
void RankDatabase::Impl::count(Totals& after, const SealBatch& batch) {
  after.keys += static_cast<std::int64_t>(batch.new_keys.size());
  after.chunks += static_cast<std::int64_t>(batch.chunks.size());
  for (const EncodedChunk& chunk : batch.chunks) after.add(chunk.info);
  for (const Operation& operation : batch.operations) after.add(operation);
  after.digests = read_meta(connection).digests.value_or(Digests());
}

void RankDatabase::Impl::set_state(const Totals& after, const SealBatch& batch) {
  set_meta.run(kMetaWatermark, as_signed(batch.watermark));
  set_meta.run(kMetaHeartbeat, batch.now_ns);
  set_meta.run(kMetaDroppedRows, as_signed(batch.dropped_rows));
  set_meta.run(kMetaActive, batch.active_ns);
  if (!batch.durability.empty()) set_meta.run(kMetaDurability, batch.durability);
  set_meta.run(kMetaRows, as_signed(after.rows));
  set_meta.run(kMetaChunks, after.chunks);
  set_meta.run(kMetaChunkRows, as_signed(after.chunk_rows));
  if (after.last_step) set_meta.run(kMetaLastStep, *after.last_step);
  if (after.rewind_step) set_meta.run(kMetaRewindStep, *after.rewind_step);
  for (std::size_t i = 0; i < kTableLayouts.size(); ++i) {
    const auto table = static_cast<Table>(i);
    if (after.digests[table] == totals.digests[table]) continue;
    set_meta.run(layout_of(table).digest, std::int64_t{after.digests[table]});
  }
  record_meta_digest(connection);
}

void RankDatabase::Impl::Totals::add(const RowGroupInfo& chunk) {
  chunk_rows += chunk.rows;
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
  const Durability durability = make_rank_file(path, identity, start_time_ns, wanted);
  try {
    auto impl = std::make_unique<Impl>(path, durability);
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

EncodedChunk RankDatabase::encode(const RowGroup& group) {
  return ranklog::encode(group, impl_->encoder);
}

std::vector<EncodedChunk> RankDatabase::encode(const std::vector<RowGroup>& groups) {
  std::vector<EncodedChunk> chunks;
  chunks.reserve(groups.size());
  for (const RowGroup& group : groups) chunks.push_back(encode(group));
  return chunks;
}

void RankDatabase::commit(const SealBatch& batch) {
  Impl& db = *impl_;
  require_in_place(db.connection, db.path);
  Impl::Totals after = db.totals;
  Transaction transaction(db.connection);
  // What is in already is committed once more, without it: it may not be durable yet.
  if (db.holds_already(batch)) {
    db.count(after, batch);
  } else {
    db.insert(after, batch);
  }
  after.watermark = batch.watermark;
  db.set_state(after, batch);
  db.may_hold_more = true;
  transaction.commit();
  db.may_hold_more = false;
  db.totals = after;
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
  record_meta_digest(db.connection);
  transaction.commit();
  if (reason.empty()) return;
  throw Error(ErrorCode::kBusy,
              "'" + db.path.string() + "' is finished, but part of it is still in '" +
                  db.path.filename().string() + "-wal': " + reason,
              "keep the two files together");
}

}  // namespace ranklog
