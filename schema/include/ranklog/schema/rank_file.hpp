#pragma once
// Reading one rank's file, finished or while it is being written.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ranklog/schema/identity.hpp"
#include "ranklog/schema/key_path.hpp"
#include "ranklog/schema/records.hpp"
#include "ranklog/schema/row_group.hpp"

namespace ranklog {

struct FileInfo {
  int format_version = 0;
  Identity identity;
  std::int64_t start_time_ns = 0;  // Unix
  std::optional<std::int64_t> end_time_ns;
  std::optional<EndState> end_state;  // empty: still running, or died
  std::optional<int> exit_code;
  std::int64_t heartbeat_ns = 0;  // when the writer last committed or appended
  std::int64_t active_ns = 0;     // how long the process had been logging at the last commit
  std::uint64_t rows = 0;         // of the history: chunks and tail
  std::uint64_t dropped_rows = 0;
  std::optional<std::int64_t> last_step;    // greatest step of the history
  std::optional<std::int64_t> rewind_step;  // the smallest step that the rank was rewound to
  std::string durability = "{}";            // JSON object (durability.hpp)
  std::uint64_t stored_bytes = 0;           // database, WAL and tail
};

// A part of a file that could not be read. The rest is still there.
struct Damage {
  std::string place;   // "chunk 12", "tail segment rank-00000.tail.3 at byte 4096"
  std::string reason;  // "checksum mismatch"
};

// A consistent view of one rank file as it was when it was opened: every row whose log() had returned by
// then, chunks and tail, each once. Reading never blocks the writer's log(); while a view is open sealing may
// wait.
//
// Threads: one at a time. Memory: index and tail; chunks are decoded one by one on request.
// Errors: open() throws Error: kNotFound, kIo, kNotOurs (not a ranklog file), kVersion (named), kDamaged (no
// part of it can be read). Damage to a part is no error: see damage().
class RankFile {
 public:
  static RankFile open(const std::filesystem::path& path);
  RankFile(RankFile&&) noexcept;
  RankFile& operator=(RankFile&&) noexcept;
  ~RankFile();

  [[nodiscard]] const std::filesystem::path& path() const noexcept;
  [[nodiscard]] const FileInfo& info() const noexcept;
  [[nodiscard]] const std::vector<KeyPath>& keys() const noexcept;  // index: KeyId

  // Of one stream: chunks in the order in which they were sealed, then the tail's groups. load(i, stream)
  // decodes row_groups(stream)[i]; for a damaged chunk it throws Error (kDamaged), after which damage() lists
  // it.
  [[nodiscard]] std::span<const RowGroupInfo> row_groups(Stream stream = Stream::kHistory) const noexcept;
  [[nodiscard]] RowGroup load(std::size_t index, Stream stream = Stream::kHistory) const;
  // Only the columns of these keys, which ascend; costs what they cost. Keys that the group does not have add
  // nothing.
  [[nodiscard]] RowGroup load(std::size_t index, std::span<const KeyId> keys,
                              Stream stream = Stream::kHistory) const;

  [[nodiscard]] std::vector<ConfigEntry> config() const;  // latest value a key, in order of first appearance
  [[nodiscard]] std::vector<MetricDefinition> metric_definitions() const;
  [[nodiscard]] std::vector<SummaryOverride> summary_overrides() const;
  [[nodiscard]] std::vector<Event> events() const;        // by sequence
  [[nodiscard]] std::vector<Event> rewinds() const;       // of these the rewinds, faster
  [[nodiscard]] std::vector<Artifact> artifacts() const;  // by sequence
  [[nodiscard]] std::vector<RunFile> files() const;       // by sequence; of one name only the latest

  // What the file is made of, whether this version knows it or not: "table chunk", "column config.json",
  // "rank in meta", "stream 3" …, sorted. For who compares a file with a copy of it.
  [[nodiscard]] std::vector<std::string> contents() const;

  // Has SQLite look at every page, too; what it finds is then in damage().
  void check_pages() const;
  [[nodiscard]] std::vector<Damage> damage() const;

 private:
  struct Impl;
  explicit RankFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ranklog
