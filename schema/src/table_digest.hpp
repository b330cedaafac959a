#pragma once
// Checksums over the rows of the tables that have none of their own, kept in `meta` (FORMAT.md, "Digests").

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sqlite.hpp"

namespace ranklog {

enum class Table : std::uint8_t {
  kKey,
  kConfig,
  kMetric,
  kSummary,
  kEvent,
  kArtifact,
  kArtifactFile,
  kFile,
};

struct TableLayout {
  std::string_view name;
  std::string_view digest;  // its name in `meta`
  std::string_view columns;
  int column_count;
};
// On disk, frozen: a digest covers these columns in this order.
inline constexpr std::array<TableLayout, 8> kTableLayouts{{
    {"key", "digest_key", "id, path", 2},
    {"config", "digest_config", "key, position, json", 3},
    {"metric", "digest_metric", "name, position, step_metric, hidden, step_sync, summary, goal", 7},
    {"summary", "digest_summary", "key, position, json", 3},
    {"event", "digest_event", "sequence, time_ns, step, kind, json", 5},
    {"artifact", "digest_artifact",
     "sequence, time_ns, name, type, description, step, ttl_seconds, aliases, tags, metadata", 10},
    {"artifact_file", "digest_artifact_file",
     "artifact, position, name, path, size, md5, sha256, reference, json", 9},
    {"file", "digest_file", "sequence, time_ns, name, path, size, md5, sha256, kind", 8},
}};
[[nodiscard]] constexpr const TableLayout& layout_of(Table table) {
  return kTableLayouts.at(static_cast<std::size_t>(table));
}
inline constexpr std::string_view kMetaDigest = "digest_meta";
inline constexpr std::string_view kDigestPrefix = "digest_";

// A table's digest is the sum of its rows' digests, so that rows may be added in any order; 0 without rows.
class Digests {
 public:
  [[nodiscard]] std::uint32_t& operator[](Table table) { return sums_.at(static_cast<std::size_t>(table)); }
  [[nodiscard]] std::uint32_t operator[](Table table) const {
    return sums_.at(static_cast<std::size_t>(table));
  }
  friend bool operator==(const Digests&, const Digests&) = default;

 private:
  std::array<std::uint32_t, kTableLayouts.size()> sums_{};
};

// The fields of one row, one after the other.
class RowDigest {
 public:
  void add(std::int64_t value);
  void add(std::string_view text);
  void add(const std::optional<std::int64_t>& value);
  void add(const Statement& row, int column);
  [[nodiscard]] std::uint32_t value() const;

 private:
  void add_bytes(std::uint8_t tag, std::string_view bytes);

  std::string bytes_;
};

template <class... Values>
[[nodiscard]] std::uint32_t digest_of_row(const Values&... values) {
  RowDigest digest;
  (digest.add(values), ...);
  return digest.value();
}
// Of the first columns of a row that was selected. Look at them before they are read in any other way.
[[nodiscard]] std::uint32_t digest_of_columns(const Statement& row, int columns);

[[nodiscard]] std::uint32_t digest_of_table(Connection& connection, Table table);
// Of all rows of `meta` but its own.
[[nodiscard]] std::uint32_t digest_of_meta(Connection& connection);

}  // namespace ranklog
