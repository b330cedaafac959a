#include "rank_tables.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "rank_schema.hpp"
#include "ranklog/schema/chunk_codec.hpp"

namespace ranklog {
namespace {

// Calls `read` for every row of a query; damage ends it and is named.
template <class Read>
void for_each_row(Connection& connection, const char* table, std::string_view sql,
                  std::vector<Damage>& damage, Read read) {
  try {
    Statement statement = connection.prepare(sql);
    while (statement.step()) read(statement);
  } catch (const SqliteError& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    damage.push_back({std::string("table ") + table, error.what()});
  }
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

constexpr std::string_view kChunkColumns =
    "SELECT id, rows, first_sequence, last_sequence, min_step, max_step, min_time_ns, max_time_ns, "
    "length(stats) + length(data), stats FROM chunk ";

// Empty if nothing of the chunk can be used.
std::optional<RowGroupInfo> read_chunk_info(Connection& connection, const Statement& row,
                                            std::vector<Damage>& damage) {
  RowGroupInfo info;
  info.id = row.integer(0);
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
    return info;
  } catch (const Error& error) {
    damage.push_back({place + ", statistics", error.what()});
  }
  try {
    RowGroupInfo described = describe(read_chunk(connection, info.id));
    described.id = info.id;
    described.stored_bytes = info.stored_bytes;
    return described;
  } catch (const Error& error) {
    damage.push_back({place, error.what()});
    return std::nullopt;
  }
}

// One by one, after a page of the table's tree could not be read: the others still can.
std::vector<RowGroupInfo> search_chunks(Connection& connection, std::uint64_t chunks,
                                        std::vector<Damage>& damage) {
  // More than fit in the file would only be a damaged count.
  constexpr std::int64_t kMostChunksAPage = 64;
  const std::int64_t pages = connection.query_integer("PRAGMA page_count");
  const auto last = std::min(chunks, static_cast<std::uint64_t>(pages * kMostChunksAPage));
  std::vector<RowGroupInfo> found;
  Statement statement = connection.prepare(std::string(kChunkColumns) + "WHERE id = ?1");
  for (std::uint64_t id = 1; id <= last; ++id) {
    try {
      statement.bind(1, static_cast<std::int64_t>(id));
      if (statement.step()) {
        if (auto info = read_chunk_info(connection, statement, damage)) found.push_back(std::move(*info));
      } else {
        damage.push_back({"chunk " + std::to_string(id), "it is missing"});
      }
    } catch (const SqliteError& error) {
      if (error.code() != ErrorCode::kDamaged) throw;
      damage.push_back({"chunk " + std::to_string(id), error.what()});
    }
    statement.reset();
  }
  return found;
}

}  // namespace

void read_keys(Connection& connection, KeyTable& keys, std::vector<Damage>& damage) {
  for_each_row(connection, "key", "SELECT id, path FROM key ORDER BY id", damage, [&](const Statement& row) {
    const std::int64_t id = row.integer(0);
    try {
      if (id < 0 || id > std::numeric_limits<KeyId>::max()) throw Error(ErrorCode::kDamaged, "out of range");
      keys.define(static_cast<KeyId>(id), KeyPath::parse(row.text(1)));
    } catch (const Error& error) {
      damage.push_back({"key " + std::to_string(id), error.what()});
    }
  });
}

void read_config(Connection& connection, std::vector<ConfigEntry>& entries, std::vector<Damage>& damage) {
  for_each_row(
      connection, "config", "SELECT key, json FROM config ORDER BY position", damage,
      [&](const Statement& row) { entries.push_back({std::string(row.text(0)), std::string(row.text(1))}); });
}

void read_summary(Connection& connection, std::vector<SummaryOverride>& entries,
                  std::vector<Damage>& damage) {
  for_each_row(
      connection, "summary", "SELECT key, json FROM summary ORDER BY position", damage,
      [&](const Statement& row) { entries.push_back({std::string(row.text(0)), std::string(row.text(1))}); });
}

void read_metrics(Connection& connection, std::vector<MetricDefinition>& metrics,
                  std::vector<Damage>& damage) {
  for_each_row(connection, "metric",
               "SELECT name, step_metric, hidden, step_sync, summary, goal FROM metric ORDER BY position",
               damage, [&](const Statement& row) {
                 MetricDefinition& metric = metrics.emplace_back();
                 metric.name = row.text(0);
                 metric.step_metric = row.text(1);
                 metric.hidden = row.integer(2) != 0;
                 metric.step_sync = row.integer(3) != 0;
                 metric.summary = texts_of_json(row.text(4));
                 metric.goal = row.text(5);
               });
}

std::vector<RowGroupInfo> read_chunk_index(Connection& connection, std::uint64_t chunks,
                                           std::vector<Damage>& damage) {
  std::vector<Damage> found_damage;
  std::vector<RowGroupInfo> found;
  try {
    Statement statement = connection.prepare(std::string(kChunkColumns) + "ORDER BY id");
    while (statement.step()) {
      if (auto info = read_chunk_info(connection, statement, found_damage)) found.push_back(std::move(*info));
    }
  } catch (const SqliteError& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    found_damage.clear();
    found = search_chunks(connection, chunks, found_damage);
  }
  damage.insert(damage.end(), found_damage.begin(), found_damage.end());
  return found;
}

RowGroup read_chunk(Connection& connection, std::int64_t id) {
  Statement statement = connection.prepare("SELECT data FROM chunk WHERE id = ?1");
  statement.bind(1, id);
  if (!statement.step()) throw Error(ErrorCode::kDamaged, "it is missing");
  return decode_chunk(statement.blob(0));
}

void read_events(Connection& connection, std::uint64_t watermark, std::vector<Event>& events) {
  Statement row = connection.prepare(
      "SELECT sequence, time_ns, step, kind, json FROM event WHERE sequence <= ?1 ORDER BY sequence");
  row.bind(1, static_cast<std::int64_t>(watermark));
  while (row.step()) {
    events.push_back({static_cast<std::uint64_t>(row.integer(0)), row.integer(1), row.optional_integer(2),
                      std::string(row.text(3)), std::string(row.text(4))});
  }
}

void read_artifacts(Connection& connection, std::uint64_t watermark, std::vector<Artifact>& artifacts) {
  Statement row = connection.prepare(
      "SELECT sequence, time_ns, name, type, description, step, aliases, tags, metadata FROM artifact "
      "WHERE sequence <= ?1 ORDER BY sequence");
  Statement file = connection.prepare(
      "SELECT name, path, size, md5, sha256 FROM artifact_file WHERE artifact = ?1 ORDER BY position");
  row.bind(1, static_cast<std::int64_t>(watermark));
  while (row.step()) {
    Artifact artifact;
    artifact.sequence = static_cast<std::uint64_t>(row.integer(0));
    artifact.time_ns = row.integer(1);
    artifact.name = row.text(2);
    artifact.type = row.text(3);
    artifact.description = row.text(4);
    artifact.step = row.optional_integer(5);
    artifact.aliases = texts_of_json(row.text(6));
    artifact.tags = texts_of_json(row.text(7));
    artifact.metadata_json = row.text(8);
    file.bind(1, row.integer(0));
    while (file.step()) {
      artifact.files.push_back({std::string(file.text(0)), std::string(file.text(1)),
                                static_cast<std::uint64_t>(file.integer(2)), std::string(file.text(3)),
                                std::string(file.text(4))});
    }
    file.reset();
    artifacts.push_back(std::move(artifact));
  }
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
