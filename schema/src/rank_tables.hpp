#pragma once
// The tables of a rank file, read row by row.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "key_table.hpp"
#include "rank_schema.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "sqlite.hpp"

namespace ranklog {

// How far the tables are read, and what `meta` said of them then.
struct TableState {
  std::uint64_t watermark = 0;
  std::optional<Digests> digests;
};

// These read as far as they can and name in `damage` what they cannot, and tables that hold other rows than
// those that were written.
void read_keys(Connection& connection, const TableState& state, KeyTable& keys, std::vector<Damage>& damage);
void read_config(Connection& connection, const TableState& state, std::vector<ConfigEntry>& entries,
                 std::vector<Damage>& damage);
void read_metrics(Connection& connection, const TableState& state, std::vector<MetricDefinition>& metrics,
                  std::vector<Damage>& damage);
void read_summary(Connection& connection, const TableState& state, std::vector<SummaryOverride>& entries,
                  std::vector<Damage>& damage);
// Up to and including sequence `state.watermark`: what was written since is not what `state` tells of.
void read_events(Connection& connection, const TableState& state, std::vector<Event>& events,
                 std::vector<Damage>& damage);
void read_rewinds(Connection& connection, const TableState& state, std::vector<Event>& events,
                  std::vector<Damage>& damage);
void read_artifacts(Connection& connection, const TableState& state, std::vector<Artifact>& artifacts,
                    std::vector<Damage>& damage);
void read_files(Connection& connection, const TableState& state, std::vector<RunFile>& files,
                std::vector<Damage>& damage);

// All chunks of known streams that can be found, by id. A chunk whose statistics are damaged is described
// anew from its data.
[[nodiscard]] std::vector<RowGroupInfo> read_chunk_index(Connection& connection, ChunkTotals expected,
                                                         std::vector<Damage>& damage);
// The rows of a chunk, also if it has become part of a greater one since it was described. Throws Error
// (kDamaged). With `keys`, which ascend: only their columns.
[[nodiscard]] RowGroup read_chunk(Connection& connection, const RowGroupInfo& info,
                                  std::optional<std::span<const KeyId>> keys = {});

// A later entry replaces an earlier one of the same name in its place.
void apply(std::vector<ConfigEntry>& entries, const ConfigEntry& entry);
void apply(std::vector<MetricDefinition>& metrics, const MetricDefinition& metric);
void apply(std::vector<SummaryOverride>& entries, const SummaryOverride& entry);

}  // namespace ranklog
