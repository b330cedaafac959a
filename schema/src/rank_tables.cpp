#include "rank_tables.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <ranges>

#include "rank_schema.hpp"
#include "ranklog/schema/chunk_codec.hpp"

namespace ranklog {
namespace {

// Calls `read` for every row of a table; damage ends it and is named. `rest`: what stands behind the table's
// name; in it ?1 is the watermark.
template <class Read>
void for_each_row(Connection& connection, Table table, std::string_view rest, const TableState& state,
                  std::vector<Damage>& damage, Read read) {
  const TableLayout& layout = layout_of(table);
  const std::string place = "table " + std::string(layout.name);
  std::uint32_t digest = 0;
  try {
    Statement row = connection.prepare("SELECT " + std::string(layout.columns) + " FROM " +
                                       std::string(layout.name) + " " + std::string(rest));
    if (rest.find("?1") != std::string_view::npos) {
      row.bind(1, static_cast<std::int64_t>(state.watermark));
    }
    while (row.step()) {
      digest += digest_of_columns(row, layout.column_count);
      read(row);
    }
  } catch (const SqliteError& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    damage.push_back({place, error.what()});
    return;
  }
  if (state.digests && digest != (*state.digests)[table]) damage.push_back({place, kOtherRows});
}

template <class T, class Name>
void replace_or_add(std::vector<T>& entries, const T& entry, Name T::* name) {
  const auto found = std::ranges::find(entries, entry.*name, name);
  if (found == entries.end()) {
    entries.push_back(entry);
  } else {
    *found = entry;
  }
}

using Keys = std::optional<std::span<const KeyId>>;

RowGroup decode_chunk_of(Connection& connection, std::int64_t id, Keys keys = {}) {
  Statement statement = connection.prepare("SELECT data FROM chunk WHERE id = ?1");
  statement.bind(1, id);
  if (!statement.step()) throw Error(ErrorCode::kDamaged, "it is missing");
  return keys ? decode_chunk(statement.blob(0), *keys) : decode_chunk(statement.blob(0));
}

constexpr std::string_view kChunkColumns =
    "SELECT id, rows, first_sequence, last_sequence, min_step, max_step, min_time_ns, max_time_ns, "
    "length(stats) + length(data), stats, stream FROM chunk ";

Stream stream_of(std::int64_t number) {
  constexpr std::int64_t kNone = std::numeric_limits<std::uint8_t>::max();
  return static_cast<Stream>(number >= 0 && number < kNone ? number : kNone);
}

std::optional<RowGroupInfo> if_known(RowGroupInfo info) {
  if (!is_known(info.stream)) return std::nullopt;
  return info;
}

// Empty if nothing of the chunk can be used, or its stream is one that this version does not know.
std::optional<RowGroupInfo> read_chunk_info(Connection& connection, const Statement& row,
                                            std::vector<Damage>& damage) {
  RowGroupInfo info;
  info.id = row.integer(0);
  info.stream = stream_of(row.integer(10));
  info.rows = static_cast<std::uint64_t>(row.integer(1));
  info.first_sequence = static_cast<std::uint64_t>(row.integer(2));
  info.last_sequence = static_cast<std::uint64_t>(row.integer(3));
  info.min_step = row.integer(4);
  info.max_step = row.integer(5);
  info.min_time_ns = row.integer(6);
  info.max_time_ns = row.integer(7);
  info.stored_bytes = static_cast<std::uint64_t>(row.integer(8));
  const std::string place = "chunk " + std::to_string(info.id);
  try {
    decode_stats(row.blob(9), info);
    return if_known(std::move(info));
  } catch (const Error& error) {
    damage.push_back({place + ", statistics", error.what()});
  }
  try {
    RowGroupInfo described = describe(decode_chunk_of(connection, info.id));
    described.id = info.id;
    described.stored_bytes = info.stored_bytes;
    return if_known(std::move(described));
  } catch (const Error& error) {
    damage.push_back({place, error.what()});
    return std::nullopt;
  }
}

// The chunks as they are found, and what there is of them.
class ChunkIndex {
 public:
  explicit ChunkIndex(const ChunkTotals& expected) : expected_(expected) {}

  void read_in_order(Connection& connection);
  void search(Connection& connection);
  void compare();

  std::vector<RowGroupInfo> chunks;
  std::vector<Damage> damage;

 private:
  void add(Connection& connection, const Statement& row);

  ChunkTotals expected_;
  std::int64_t last_id_ = 0;
  std::uint64_t rows_ = 0, history_rows_ = 0;
};

void ChunkIndex::add(Connection& connection, const Statement& row) {
  const std::int64_t id = row.integer(0);
  if (id <= last_id_) damage.push_back({"chunk " + std::to_string(id), "it is out of order"});
  last_id_ = id;
  const auto rows = static_cast<std::uint64_t>(row.integer(1));
  auto info = read_chunk_info(connection, row, damage);
  rows_ += info ? info->rows : rows;
  if (!info) return;
  history_rows_ += info->stream == Stream::kHistory ? info->rows : 0;
  chunks.push_back(std::move(*info));
}

void ChunkIndex::read_in_order(Connection& connection) {
  Statement statement = connection.prepare(std::string(kChunkColumns) + "ORDER BY id");
  while (statement.step()) add(connection, statement);
}

// One by one, after a page of the table's tree could not be read: the others still can.
void ChunkIndex::search(Connection& connection) {
  // More than fit in the file would only be a damaged number.
  constexpr std::int64_t kMostChunksAPage = 64;
  const std::int64_t pages = connection.query_integer("PRAGMA page_count");
  const auto last = std::min(expected_.greatest_id, static_cast<std::uint64_t>(pages * kMostChunksAPage));
  Statement statement = connection.prepare(std::string(kChunkColumns) + "WHERE id = ?1");
  for (std::uint64_t id = 1; id <= last; ++id) {
    try {
      statement.bind(1, static_cast<std::int64_t>(id));
      if (statement.step()) add(connection, statement);
    } catch (const SqliteError& error) {
      if (error.code() != ErrorCode::kDamaged) throw;
      damage.push_back({"chunk " + std::to_string(id), error.what()});
    }
    statement.reset();
  }
}

// A damaged page may hide whole chunks from SQLite without a word of its own.
void ChunkIndex::compare() {
  const std::uint64_t found = expected_.rows ? rows_ : history_rows_;
  const std::uint64_t wanted = expected_.rows.value_or(expected_.history_rows);
  if (found < wanted) damage.push_back({"table chunk", std::to_string(wanted - found) + " rows are missing"});
  if (found > wanted) damage.push_back({"table chunk", std::to_string(found - wanted) + " rows too many"});
  if (last_id_ > 0 && static_cast<std::uint64_t>(last_id_) > expected_.greatest_id) {
    damage.push_back({"chunk " + std::to_string(last_id_), "its number was never given"});
  }
}

bool is_wanted(KeyId key, Keys keys) {
  return !keys || std::ranges::binary_search(*keys, key);
}

bool is_described_by(const RowGroup& group, const RowGroupInfo& info, Keys keys = {}) {
  auto described = info.series | std::views::transform(&SeriesStats::key) |
                   std::views::filter([&](KeyId key) { return is_wanted(key, keys); });
  return group.stream == info.stream && std::ranges::equal(group.columns, described, {}, &Column::key);
}

// The rows that `info` describes, of a chunk that may hold more of the same series.
RowGroup take_part(const RowGroup& whole, const RowGroupInfo& info) {
  RowGroup part;
  part.stream = whole.stream;
  for (const Column& column : whole.columns) part.columns.emplace_back(column.key());
  for (std::size_t row = 0; row < whole.rows(); ++row) {
    if (whole.sequence[row] < info.first_sequence || whole.sequence[row] > info.last_sequence) continue;
    part.sequence.push_back(whole.sequence[row]);
    part.step.push_back(whole.step[row]);
    part.time_ns.push_back(whole.time_ns[row]);
    for (std::size_t i = 0; i < part.columns.size(); ++i) {
      part.columns[i].push_back(whole.columns[i].at(row));
    }
  }
  return part;
}

// Where the rows of a chunk went that is no longer there by itself. Empty if they are nowhere.
std::optional<RowGroup> find_merged(Connection& connection, const RowGroupInfo& info) {
  Statement statement = connection.prepare(
      "SELECT data FROM chunk WHERE first_sequence <= ?1 AND last_sequence >= ?2 AND rows > ?3");
  statement.bind(1, static_cast<std::int64_t>(info.first_sequence));
  statement.bind(2, static_cast<std::int64_t>(info.last_sequence));
  statement.bind(3, static_cast<std::int64_t>(info.rows));
  while (statement.step()) {
    const RowGroup whole = decode_chunk(statement.blob(0));
    if (!is_described_by(whole, info)) continue;
    RowGroup part = take_part(whole, info);
    if (part.rows() == info.rows) return part;
  }
  return std::nullopt;
}

constexpr std::string_view kUpToTheWatermark = "WHERE sequence <= ?1 ORDER BY sequence";

Event event_of(const Statement& row) {
  return {static_cast<std::uint64_t>(row.integer(0)), row.integer(1), row.optional_integer(2),
          std::string(row.text(3)), std::string(row.text(4))};
}

Artifact artifact_of(const Statement& row) {
  Artifact artifact;
  artifact.sequence = static_cast<std::uint64_t>(row.integer(0));
  artifact.time_ns = row.integer(1);
  artifact.name = row.text(2);
  artifact.type = row.text(3);
  artifact.description = row.text(4);
  artifact.step = row.optional_integer(5);
  artifact.ttl_seconds = row.optional_integer(6);
  artifact.aliases = texts_of_json(row.text(7));
  artifact.tags = texts_of_json(row.text(8));
  artifact.metadata_json = row.text(9);
  return artifact;
}

ArtifactFile artifact_file_of(const Statement& row) {
  ArtifactFile file;
  file.name = row.text(2);
  file.path = row.text(3);
  file.size = static_cast<std::uint64_t>(row.integer(4));
  file.md5 = row.text(5);
  file.sha256 = row.text(6);
  file.reference = row.text(7);
  file.json = row.text(8);
  return file;
}

}  // namespace

void read_keys(Connection& connection, const TableState& state, KeyTable& keys, std::vector<Damage>& damage) {
  for_each_row(connection, Table::kKey, "ORDER BY id", state, damage, [&](const Statement& row) {
    const std::int64_t id = row.integer(0);
    try {
      if (id < 0 || id > std::numeric_limits<KeyId>::max()) throw Error(ErrorCode::kDamaged, "out of range");
      keys.define(static_cast<KeyId>(id), KeyPath::parse(row.text(1)));
    } catch (const Error& error) {
      damage.push_back({"key " + std::to_string(id), error.what()});
    }
  });
}

void read_config(Connection& connection, const TableState& state, std::vector<ConfigEntry>& entries,
                 std::vector<Damage>& damage) {
  for_each_row(connection, Table::kConfig, "ORDER BY position", state, damage, [&](const Statement& row) {
    entries.push_back({std::string(row.text(0)), std::string(row.text(2))});
  });
}

void read_summary(Connection& connection, const TableState& state, std::vector<SummaryOverride>& entries,
                  std::vector<Damage>& damage) {
  for_each_row(connection, Table::kSummary, "ORDER BY position", state, damage, [&](const Statement& row) {
    entries.push_back({std::string(row.text(0)), std::string(row.text(2))});
  });
}

void read_metrics(Connection& connection, const TableState& state, std::vector<MetricDefinition>& metrics,
                  std::vector<Damage>& damage) {
  for_each_row(connection, Table::kMetric, "ORDER BY position", state, damage, [&](const Statement& row) {
    MetricDefinition& metric = metrics.emplace_back();
    metric.name = row.text(0);
    metric.step_metric = row.text(2);
    metric.hidden = row.integer(3) != 0;
    metric.step_sync = row.integer(4) != 0;
    metric.summary = texts_of_json(row.text(5));
    metric.goal = row.text(6);
  });
}

void read_events(Connection& connection, const TableState& state, std::vector<Event>& events,
                 std::vector<Damage>& damage) {
  for_each_row(connection, Table::kEvent, kUpToTheWatermark, state, damage,
               [&](const Statement& row) { events.push_back(event_of(row)); });
}

void read_rewinds(Connection& connection, const TableState& state, std::vector<Event>& events,
                  std::vector<Damage>& damage) {
  for_each_row(connection, Table::kEvent, kUpToTheWatermark, state, damage, [&](const Statement& row) {
    if (row.text(3) == kRewindEvent) events.push_back(event_of(row));
  });
}

void read_artifacts(Connection& connection, const TableState& state, std::vector<Artifact>& artifacts,
                    std::vector<Damage>& damage) {
  std::map<std::uint64_t, std::size_t> index_of;
  for_each_row(connection, Table::kArtifact, kUpToTheWatermark, state, damage, [&](const Statement& row) {
    artifacts.push_back(artifact_of(row));
    index_of[artifacts.back().sequence] = artifacts.size() - 1;
  });
  for_each_row(connection, Table::kArtifactFile, "WHERE artifact <= ?1 ORDER BY artifact, position", state,
               damage, [&](const Statement& row) {
                 const auto artifact = index_of.find(static_cast<std::uint64_t>(row.integer(0)));
                 if (artifact != index_of.end()) {
                   artifacts[artifact->second].files.push_back(artifact_file_of(row));
                 }
               });
}

void read_files(Connection& connection, const TableState& state, std::vector<RunFile>& files,
                std::vector<Damage>& damage) {
  for_each_row(connection, Table::kFile, kUpToTheWatermark, state, damage, [&](const Statement& row) {
    files.push_back({static_cast<std::uint64_t>(row.integer(0)), row.integer(1), std::string(row.text(2)),
                     std::string(row.text(3)), static_cast<std::uint64_t>(row.integer(4)),
                     std::string(row.text(5)), std::string(row.text(6)), std::string(row.text(7))});
  });
}

std::vector<RowGroupInfo> read_chunk_index(Connection& connection, ChunkTotals expected,
                                           std::vector<Damage>& damage) {
  ChunkIndex index(expected);
  try {
    index.read_in_order(connection);
  } catch (const SqliteError& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    index = ChunkIndex(expected);
    index.search(connection);
  }
  index.compare();
  damage.insert(damage.end(), index.damage.begin(), index.damage.end());
  return std::move(index.chunks);
}

RowGroup read_chunk(Connection& connection, const RowGroupInfo& info, Keys keys) {
  std::string reason = "it is missing";
  try {
    RowGroup group = decode_chunk_of(connection, info.id, keys);
    const bool same = group.rows() == info.rows && is_described_by(group, info, keys) &&
                      (info.rows == 0 || (std::ranges::min(group.sequence) == info.first_sequence &&
                                          std::ranges::max(group.sequence) == info.last_sequence));
    if (same) return group;
    reason = "its rows or keys differ from what the index says";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    reason = error.what();
  }
  if (auto part = find_merged(connection, info)) {
    std::erase_if(part->columns, [&](const Column& column) { return !is_wanted(column.key(), keys); });
    return std::move(*part);
  }
  throw Error(ErrorCode::kDamaged, reason);
}

void apply(std::vector<ConfigEntry>& entries, const ConfigEntry& entry) {
  replace_or_add(entries, entry, &ConfigEntry::key);
}
void apply(std::vector<MetricDefinition>& metrics, const MetricDefinition& metric) {
  replace_or_add(metrics, metric, &MetricDefinition::name);
}
void apply(std::vector<SummaryOverride>& entries, const SummaryOverride& entry) {
  replace_or_add(entries, entry, &SummaryOverride::key);
}

}  // namespace ranklog
