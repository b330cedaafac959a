#include "compaction.hpp"

#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "chunk_insert.hpp"
#include "rank_tables.hpp"
#include "ranklog/schema/owner.hpp"
#include "ranklog/schema/time.hpp"
#include "write_connection.hpp"

namespace ranklog {
namespace {

// Neighbours in the order in which they were sealed, to become one chunk.
using Run = std::vector<RowGroupInfo>;

std::uint64_t rows_of(const Run& run) {
  std::uint64_t rows = 0;
  for (const RowGroupInfo& info : run) rows += info.rows;
  return rows;
}

std::vector<KeyId> keys_of(const RowGroupInfo& info) {
  std::vector<KeyId> keys;
  keys.reserve(info.series.size());
  for (const SeriesStats& series : info.series) keys.push_back(series.key);
  return keys;
}

// Rows of two chunks must not change places: a run holds ascending ranges of sequence numbers.
bool fits(const Run& run, const RowGroupInfo& info) {
  return run.back().last_sequence < info.first_sequence && rows_of(run) + info.rows <= kMaxGroupRows &&
         (rows_of(run) + info.rows) * info.series.size() <= kMaxGroupValues;
}

std::vector<Run> plan_runs(Connection& connection, Compaction& result) {
  std::vector<Damage> ignored;
  const std::vector<RowGroupInfo> chunks = read_chunk_index(connection, {}, ignored);
  std::map<std::pair<Stream, std::vector<KeyId>>, Run> open;
  std::vector<Run> runs;
  for (const RowGroupInfo& info : chunks) {
    Run& run = open[{info.stream, keys_of(info)}];
    if (!run.empty() && !fits(run, info)) runs.push_back(std::exchange(run, {}));
    run.push_back(info);
  }
  for (auto& [kind, run] : open) runs.push_back(std::move(run));
  std::erase_if(runs, [](const Run& run) { return run.size() < 2; });
  result.chunks_before = result.chunks_after = chunks.size();
  return runs;
}

void append(RowGroup& group, const RowGroup& more) {
  group.sequence.insert(group.sequence.end(), more.sequence.begin(), more.sequence.end());
  group.step.insert(group.step.end(), more.step.begin(), more.step.end());
  group.time_ns.insert(group.time_ns.end(), more.time_ns.begin(), more.time_ns.end());
  for (std::size_t i = 0; i < group.columns.size(); ++i) {
    for (std::size_t row = 0; row < more.rows(); ++row) group.columns[i].push_back(more.columns[i].at(row));
  }
}

std::uint64_t text_bytes_of(const RowGroup& group) {
  std::uint64_t bytes = 0;
  for (const Column& column : group.columns) {
    for (const std::string& text : column.texts()) bytes += text.size();
  }
  return bytes;
}

// Empty if a chunk of the run cannot be read, or the texts would be too much for one.
RowGroup load(Connection& connection, const Run& run) {
  RowGroup group;
  std::uint64_t text_bytes = 0;
  try {
    for (const RowGroupInfo& info : run) {
      RowGroup part = read_chunk(connection, info);
      text_bytes += text_bytes_of(part);
      if (text_bytes > kMaxGroupTextBytes) return {};
      if (group.columns.empty()) {
        group = std::move(part);
      } else {
        append(group, part);
      }
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    return {};
  }
  return group;
}

// The first chunk's id stays; the sum of rows does, too.
bool merge(Connection& connection, const Run& run) {
  const RowGroup group = load(connection, run);
  if (group.columns.empty()) return false;
  ChunkEncoder encoder;
  const EncodedChunk chunk = encode(group, encoder);
  Transaction transaction(connection);
  Statement remove = connection.prepare("DELETE FROM chunk WHERE id = ?1");
  for (const RowGroupInfo& info : run) remove.run(info.id);
  Statement add = connection.prepare(kInsertChunk);
  insert(add, run.front().id, chunk);
  transaction.commit();
  return true;
}

}  // namespace

Compaction merge_small_chunks(Connection& connection, std::chrono::steady_clock::time_point deadline) {
  Compaction result;
  for (const Run& run : plan_runs(connection, result)) {
    if (std::chrono::steady_clock::now() >= deadline) break;
    if (merge(connection, run)) result.chunks_after -= run.size() - 1;
  }
  return result;
}

void reclaim_space(Connection& connection, std::uint64_t most_bytes) {
  constexpr std::int64_t kSmallPages = 512;  // SQLite's smallest
  constexpr std::int64_t kSmallFile = std::int64_t{1} << 19;
  constexpr std::uint64_t kMostInMemory = std::uint64_t{64} << 20;
  const std::int64_t pages = connection.query_integer("PRAGMA page_count");
  const std::int64_t unused = connection.query_integer("PRAGMA freelist_count");
  const std::int64_t page_bytes = connection.query_integer("PRAGMA page_size");
  const auto bytes = static_cast<std::uint64_t>(pages * page_bytes);
  const bool shrinks = page_bytes > kSmallPages && (pages - unused) * page_bytes <= kSmallFile;
  if ((!shrinks && unused <= pages / 16) || bytes > most_bytes) return;
  if (shrinks) connection.execute(("PRAGMA page_size = " + std::to_string(kSmallPages)).c_str());
  // The new file is built in SQLite's folder for temporary files, which may be small, full, or memory.
  connection.execute(bytes <= kMostInMemory ? "PRAGMA temp_store = MEMORY" : "PRAGMA temp_store = FILE");
  connection.execute("VACUUM");
}

namespace {

Error damaged(const std::filesystem::path& path, const std::string& reason) {
  return {ErrorCode::kDamaged, "'" + path.string() + "' is damaged and is left as it is: " + reason,
          "salvage it with ranklog check --repair FOLDER"};
}

// Opened, and closed again: a view that stays open would be in the way.
void require_whole(const std::filesystem::path& path) {
  const RankFile file = RankFile::open(path);
  const FileInfo& info = file.info();
  if (!info.end_time_ns) {
    throw Error(
        ErrorCode::kBusy,
        "'" + path.string() + "' has not ended: it belongs to " + describe_owner(info, unix_time_ns()),
        "only files that have ended are compacted");
  }
  (void)file.events();
  (void)file.artifacts();
  (void)file.files();
  if (const auto damage = file.damage(); !damage.empty()) {
    throw damaged(path, damage.front().place + ": " + damage.front().reason);
  }
  std::uint64_t rows = 0;
  for (const RowGroupInfo& group : file.row_groups()) rows += group.rows;
  if (rows == info.rows) return;
  throw damaged(path,
                "there are " + std::to_string(rows) + " rows, but should be " + std::to_string(info.rows));
}

// Trees that are not what SQLite takes them for would be written into.
void require_integrity(Connection& connection, const std::filesystem::path& path) {
  std::string answer;
  try {
    answer = connection.query_text("PRAGMA integrity_check(1)");
  } catch (const SqliteError& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    answer = error.what();
  }
  if (answer != "ok") throw damaged(path, "SQLite says: " + answer);
}

// The schema of a file from elsewhere may hold more than our tables: none of it runs.
Connection connect_to_compact(const std::filesystem::path& path) {
  constexpr int kBusyTimeoutMs = 5000;
  Connection connection(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, kBusyTimeoutMs);
  for (const int option :
       {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW}) {
    sqlite3_db_config(connection.get(), option, 0, nullptr);
  }
  connection.execute("PRAGMA synchronous = EXTRA");
  return connection;
}

}  // namespace

Compaction compact_rank_file(const std::filesystem::path& path) {
  require_whole(path);
  Connection connection = connect_to_compact(path);
  require_integrity(connection, path);
  // A reader that was in the way when the file ended has left it in WAL mode.
  if (!change_journal_mode(connection, JournalMode::kDelete)) {
    throw Error(ErrorCode::kBusy, "'" + path.string() + "' is being read by another program", "try again");
  }
  const Compaction result = merge_small_chunks(connection, std::chrono::steady_clock::time_point::max());
  reclaim_space(connection, std::numeric_limits<std::uint64_t>::max());
  return result;
}

}  // namespace ranklog
