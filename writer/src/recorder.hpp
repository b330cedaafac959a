#pragma once
// Where log() ends and the background thread begins: rows wait here, in memory and in the tail.
//
// The same bytes go to both. At any moment the current tail segment is its header followed by the live
// records, or it is broken: then the live records are in memory alone until the next commit, after which a
// fresh segment takes them up. So a tail on disk never has a gap that a committed batch does not fill.
//
// Threads: callers and the background thread; everything is guarded by one short lock.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "key_table.hpp"
#include "ranklog/schema/operation.hpp"
#include "ranklog/schema/tail.hpp"
#include "ranklog/writer/writer.hpp"
#include "tail_segment.hpp"

namespace ranklog::writer {

using SteadyTime = std::chrono::steady_clock::time_point;

struct PathField {
  KeyPath path;
  ValueView value;
};

// Records that the background thread has taken over: to be sealed, kept until then.
struct Backlog {
  std::vector<std::string> blocks;       // whole records
  std::vector<KeyPath> new_keys;         // since the last backlog
  std::uint64_t watermark = 0;           // the last sequence inside
  std::uint64_t dropped_rows = 0;        // so far, in all
  std::shared_ptr<TailSegment> segment;  // holds these records too, as far as it could be written
};

class Recorder {
 public:
  struct Limits {
    std::size_t chunk_rows = 4096;
    std::size_t queue_bytes = std::size_t{64} << 20;
    WhenFull when_full = WhenFull::kBlock;
    bool strict = false;
  };

  Recorder(Limits limits, std::int64_t next_step, std::shared_ptr<TailSegment> first_segment);

  // For callers. Without a step: after the greatest one so far.
  LogStatus log(std::optional<std::int64_t> step, std::span<const Field> fields) noexcept;
  LogStatus log(std::int64_t step, std::span<const PathField> fields) noexcept;
  LogStatus record(OperationBody body) noexcept;
  void close() noexcept;  // later calls return kClosed
  [[nodiscard]] std::uint64_t last_sequence() const noexcept;
  [[nodiscard]] Outcome outcome(std::uint64_t through) const;
  [[nodiscard]] bool is_durable(std::uint64_t through) const noexcept;
  [[nodiscard]] bool in_trouble() const;

  // For the background thread: until there is enough to seal, someone calls wake(), or it is that time.
  void wait_until(SteadyTime deadline);
  void wake() noexcept;

  struct Load {
    std::size_t records = 0;  // live
    bool enough = false;      // for a chunk, or half of the queue
    bool tail_broken = false;
    SteadyTime oldest;  // of the live records, if there are any
  };
  [[nodiscard]] Load load() const;

  // All live records; later ones go to `next`, which is left to the caller if the tail is broken. Without
  // `next` the tail is broken by `next_error`. One backlog at a time: then committed(), or commit_failed() as
  // often as it fails.
  [[nodiscard]] Backlog take(std::shared_ptr<TailSegment>& next, int next_error);
  void recycle(std::vector<std::string> blocks);  // memory for later records
  void committed(std::uint64_t watermark);
  void commit_failed(const char* reason) noexcept;
  // After a commit, if the tail was broken. 0, and then `segment` is the broken one (or empty), which is
  // still the only durable copy of some records; or an errno, with the tail still broken.
  int resume_tail(std::shared_ptr<TailSegment>& segment);
  void tail_failed(int error_number);
  // Counts what is neither sealed nor in the tail as dropped: the writer ends without it.
  void abandon();
  [[nodiscard]] std::shared_ptr<TailSegment> release_segment();  // at the end, when all is sealed

  struct SyncPoint {
    std::vector<std::shared_ptr<TailSegment>> segments;
    std::uint64_t through = 0;  // once they are synced, this sequence and all before it are durable
  };
  [[nodiscard]] SyncPoint sync_point() const;
  void synced(std::uint64_t through);

 private:
  // What is known of a key while rows are encoded.
  struct KeyUse {
    std::uint64_t defined_in = 0;  // segment that holds its record
    std::uint64_t row = 0;         // row that last used it, and where in that row
    std::size_t position = 0;
  };
  struct ExpectedKey {
    std::string name;
    std::optional<KeyId> id;
  };
  using Lock = std::unique_lock<std::mutex>;

  template <class Resolve>
  LogStatus log_row(std::optional<std::int64_t> step, std::size_t count, Resolve resolve) noexcept;
  [[nodiscard]] bool wait_for_room(Lock& lock);
  [[nodiscard]] bool has_room() const noexcept;
  [[nodiscard]] bool enough_to_seal() const noexcept;
  LogStatus drop() noexcept;
  [[nodiscard]] std::optional<KeyId> intern_at(std::size_t position, std::string_view name);
  void begin_row() noexcept;
  void add_field(KeyId key, ValueView value);
  [[nodiscard]] std::optional<std::int64_t> accept_step(std::optional<std::int64_t> step) const noexcept;
  void encode_row(std::string& out, std::uint64_t sequence, std::int64_t step, std::int64_t time_ns);
  template <class Encoder>
  LogStatus append(Encoder encode);
  std::string& block_with_room();
  LogStatus write_tail(std::string_view records) noexcept;
  void break_tail(int error_number) noexcept;
  void report_drops();
  void wake_locked() noexcept;
  [[nodiscard]] std::string trouble() const;

  const Limits limits_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable work_;
  std::condition_variable room_;
  bool wake_ = false;
  bool closed_ = false;

  KeyTable keys_;
  std::size_t keys_taken_ = 0;
  std::vector<KeyUse> key_uses_;            // by KeyId
  std::vector<ExpectedKey> expected_keys_;  // by the field's place in a call
  std::uint64_t row_ = 0;
  std::vector<TailField> fields_;  // of the row that is being encoded

  std::uint64_t sequence_ = 0;             // of the last record
  std::optional<std::int64_t> last_step_;  // greatest one logged
  std::int64_t next_step_;

  std::vector<std::string> blocks_;  // live records
  std::vector<std::string> spare_blocks_;
  std::size_t live_bytes_ = 0;
  std::size_t live_records_ = 0;
  SteadyTime oldest_;
  std::size_t taken_bytes_ = 0;
  std::optional<SteadyTime> full_since_;

  std::shared_ptr<TailSegment> segment_;  // current; empty if it could not be created, and in the last round
  std::shared_ptr<TailSegment> taken_segment_;  // of the backlog
  std::uint64_t segment_number_ = 1;
  int tail_error_ = 0;  // errno; not 0: broken
  std::string seal_error_;

  std::uint64_t tail_through_ = 0;  // in the tail or sealed, without a gap
  std::uint64_t durable_ = 0;       // and on the device
  std::uint64_t dropped_rows_ = 0;
  std::uint64_t unreported_drops_ = 0;
};

}  // namespace ranklog::writer
