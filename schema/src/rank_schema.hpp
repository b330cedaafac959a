#pragma once
// The tables of a rank file (FORMAT.md) and the rows of `meta`.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/schema/durability.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "sqlite.hpp"
#include "table_digest.hpp"

namespace ranklog {

// On disk, frozen: "RKLG" in SQLite's header tells our files from others.
inline constexpr std::int64_t kApplicationId = 0x524B4C47;
// SQLite's user_version, and `format_version` in meta.
inline constexpr std::int64_t kFormatVersion = 1;

// Creates the tables, sets application_id and user_version, and writes who the file belongs to.
void create_tables(Connection& connection, const Identity& identity, std::int64_t start_time_ns);
void record_durability(Connection& connection, const Durability& durability);

// The names in `meta` that change as the file grows.
inline constexpr std::string_view kMetaWatermark = "watermark";
inline constexpr std::string_view kMetaHeartbeat = "heartbeat_ns";
inline constexpr std::string_view kMetaRows = "rows";
inline constexpr std::string_view kMetaChunks = "chunks";
inline constexpr std::string_view kMetaChunkRows = "chunk_rows";
inline constexpr std::string_view kMetaDroppedRows = "dropped_rows";
inline constexpr std::string_view kMetaLastStep = "last_step";
inline constexpr std::string_view kMetaRewindStep = "rewind_step";
inline constexpr std::string_view kMetaActive = "active_ns";
inline constexpr std::string_view kMetaDurability = "durability";
inline constexpr std::string_view kMetaEndTime = "end_time_ns";
inline constexpr std::string_view kMetaEndState = "end_state";
inline constexpr std::string_view kMetaExitCode = "exit_code";

inline constexpr std::string_view kSetMeta =
    "INSERT INTO meta(name, value) VALUES(?1, ?2) "
    "ON CONFLICT(name) DO UPDATE SET value = excluded.value";

// After every change to `meta`, in the same transaction.
void record_meta_digest(Connection& connection);

// What there must be in the table `chunk`.
struct ChunkTotals {
  std::uint64_t greatest_id = 0;
  std::uint64_t history_rows = 0;
  std::optional<std::uint64_t> rows;  // of all streams; empty: the writer did not count them
};

// What is told of a table whose digest does not fit.
inline constexpr const char* kOtherRows = "its rows are not those that were written";

struct Meta {
  FileInfo info;  // without stored_bytes
  std::uint64_t watermark = 0;
  ChunkTotals chunks;
  std::optional<Digests> digests;  // empty: the writer made none
  std::vector<Damage> damage;
};
// Throws Error (kDamaged) if what every file has is not there.
[[nodiscard]] Meta read_meta(Connection& connection);

// Names of all that a database is made of, but for what its other contents decide (RankFile::contents()).
// What cannot be read is left out.
[[nodiscard]] std::vector<std::string> list_contents(Connection& connection);

// A JSON array of strings, as `meta`, `metric` and `artifact` have them. Anything else reads as empty.
[[nodiscard]] std::string json_of_texts(const std::vector<std::string>& texts);
[[nodiscard]] std::vector<std::string> texts_of_json(std::string_view json);

}  // namespace ranklog
