#pragma once
// The writing side of one rank's SQLite file. Used by one thread, the writer's.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ranklog/schema/chunk_codec.hpp"
#include "ranklog/schema/durability.hpp"
#include "ranklog/schema/identity.hpp"
#include "ranklog/schema/key_path.hpp"
#include "ranklog/schema/operation.hpp"
#include "ranklog/schema/row_group.hpp"

namespace ranklog {

// Everything with a sequence number from the last batch's `watermark` (exclusive) to this one's (inclusive).
struct SealBatch {
  std::vector<KeyPath> new_keys;     // their ids follow those of earlier batches
  std::vector<EncodedChunk> chunks;  // from RankDatabase::encode()
  std::vector<Operation> operations;
  std::uint64_t watermark = 0;
  std::uint64_t dropped_rows = 0;  // so far, in all
  std::int64_t now_ns = 0;         // heartbeat
  std::int64_t active_ns = 0;      // how long the process has been logging, by a clock that does not jump
  std::string durability;          // JSON object (FileInfo::durability); empty: as it was
};

// What survives: after commit() has returned, the batch survives process death, machine crash and power loss
// (WAL or a rollback journal, synchronous=EXTRA). Errors: every call throws Error (kIo with the file and
// SQLite's reason; kBusy); a failed commit leaves the file as it was before, and may be tried again.
class RankDatabase {
 public:
  // Creates the file exclusively; throws Error (kBusy) if it exists. Where WAL, shared memory or locks are
  // refused, or a lock call hangs (for 10 s, by then in a thread of its own), the file is written without
  // them.
  static RankDatabase create(const std::filesystem::path& path, const Identity& identity,
                             std::int64_t start_time_ns, const Durability& wanted = {});
  RankDatabase(RankDatabase&&) noexcept;
  RankDatabase& operator=(RankDatabase&&) noexcept;
  ~RankDatabase();  // closes; the file stays readable as "not ended"

  // What has come of `wanted`; stands in the file, too.
  [[nodiscard]] const Durability& durability() const noexcept;

  // A group as a chunk of this file. Reads and writes nothing; for the thread that commits.
  [[nodiscard]] EncodedChunk encode(const RowGroup& group);
  [[nodiscard]] std::vector<EncodedChunk> encode(const std::vector<RowGroup>& groups);
  void commit(const SealBatch& batch);
  // Makes one chunk of several that are small and have the same stream and keys, as far as that goes by
  // `deadline`. Views that readers hold stay as they were.
  void merge_small_chunks(std::chrono::steady_clock::time_point deadline);
  // Makes the database file complete by itself (no WAL left) without an end record. Call after the last
  // commit. Throws Error (kIo) if a part of it stays in the WAL, which then belongs to it.
  void leave_open();
  // Writes the end record and makes the database file complete by itself (no WAL left). Call after the last
  // commit.
  void finish(EndState state, std::optional<int> exit_code, std::int64_t end_time_ns, std::int64_t active_ns);

 private:
  struct Impl;
  explicit RankDatabase(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Compaction {
  std::uint64_t chunks_before = 0;
  std::uint64_t chunks_after = 0;
};

// Merges small chunks of a file that has ended, and gives their space back. Its rows stay what they are;
// chunks whose bytes fail their checksum stay, too. Throws Error: kBusy (not ended, or in use), kDamaged (the
// database's own trees or the index of its rows are not whole: nothing was written), and as RankFile::open()
// does.
Compaction compact_rank_file(const std::filesystem::path& path);

}  // namespace ranklog
