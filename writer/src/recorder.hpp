#pragma once
// What log() does: finds the keys, takes a step and a place in the tail, and copies the row there. And what
// becomes of it, for who asks.
//
// Threads: any. No lock on the way of a row whose keys are known, unless its buffer is full.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "key_table.hpp"
#include "ranklog/schema/operation.hpp"
#include "ranklog/schema/tail.hpp"
#include "ranklog/writer/writer.hpp"
#include "steady_time.hpp"
#include "tail_queue.hpp"

namespace ranklog::writer {

struct PathField {
  KeyPath path;
  ValueView value;
};

class Recorder {
 public:
  struct Limits {
    std::size_t queue_bytes = std::size_t{64} << 20;
    WhenFull when_full = WhenFull::kBlock;
    bool strict = false;
  };

  // Throws Error (kIo) if the tail cannot be created.
  Recorder(Limits limits, std::int64_t next_step, TailQueue::Files files);

  // ---- Callers ----

  // Without a step: after the greatest one so far.
  LogStatus log(std::optional<std::int64_t> step, std::span<const Field> fields) noexcept;
  LogStatus log(std::optional<std::int64_t> step, std::span<const KeyedField> fields) noexcept;
  LogStatus log(std::int64_t step, std::span<const PathField> fields) noexcept;
  // A row that is not of the history: the step is what the stream makes of it.
  LogStatus log(Stream stream, std::int64_t step, std::int64_t time_ns,
                std::span<const Field> fields) noexcept;
  LogStatus record(OperationBody body) noexcept;
  [[nodiscard]] Key key(std::string_view name);
  LogStatus rewind(std::int64_t step) noexcept;
  void close() noexcept;  // later calls return kClosed
  [[nodiscard]] bool is_closed() const noexcept { return closed_.load(); }
  [[nodiscard]] std::uint64_t last_sequence() const noexcept { return queue_.last_sequence(); }
  [[nodiscard]] Outcome outcome(std::uint64_t through) const;

  // ---- The background thread ----

  [[nodiscard]] TailQueue& queue() noexcept { return queue_; }
  [[nodiscard]] const KeyTable& keys() const noexcept { return keys_; }
  // Until someone calls wake(), the record with that number is logged, or it is that time.
  void wait_until(SteadyTime deadline, std::uint64_t sequence);
  void wake() noexcept;

  [[nodiscard]] std::uint64_t dropped_rows() const noexcept { return dropped_rows_.load(); }
  [[nodiscard]] bool has_unreported_drops() const noexcept { return unreported_drops_.load() > 0; }
  void report_drops();  // as an event, if there are new ones
  void committed(std::uint64_t watermark);
  void commit_failed(const char* reason) noexcept;
  void synced(std::uint64_t through);
  [[nodiscard]] bool is_durable(std::uint64_t through) const noexcept { return durable_.load() >= through; }
  [[nodiscard]] bool in_trouble() const;
  // Counts what is in memory alone as dropped: the writer ends without it.
  void abandon();

 private:
  template <class Fields, class KeyOf>
  LogStatus log_row(std::optional<std::int64_t> step, Fields fields, KeyOf key_of) noexcept;
  LogStatus put_row(std::int64_t step, std::int64_t time_ns, ShortRow& row) noexcept;
  LogStatus put_row(Stream stream, std::int64_t step, std::int64_t time_ns,
                    std::span<const TailField> fields) noexcept;
  template <class Publish>
  LogStatus put(const TailQueue::Reservation& reservation, std::size_t payload_bytes,
                Publish publish) noexcept;
  LogStatus put_operation(const TailQueue::Reservation& reservation, std::string& payload) noexcept;
  [[nodiscard]] const KnownKey* expect(std::size_t position, std::string_view name);
  [[nodiscard]] std::optional<std::int64_t> accept_step(std::optional<std::int64_t> step) noexcept;
  LogStatus count_drop(LogStatus status) noexcept;
  [[nodiscard]] std::string trouble() const;

  const Limits limits_;
  const std::uint64_t id_;  // no other recorder of this process has or had it
  TailQueue queue_;
  KeyTable keys_;
  std::atomic<bool> closed_{false};
  std::atomic<std::int64_t> last_step_;  // greatest one logged
  std::atomic<std::uint64_t> wake_at_{0};
  std::atomic<std::uint64_t> dropped_rows_{0};
  std::atomic<std::uint64_t> unreported_drops_{0};
  std::atomic<std::uint64_t> durable_{0};

  mutable std::mutex mutex_;  // guards everything below; no other lock is taken under it
  std::condition_variable work_;
  bool wake_ = false;
  std::string seal_error_;
};

}  // namespace ranklog::writer
