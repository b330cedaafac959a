#pragma once
// The tail as a queue: buffers in the order in which they were filled, from the oldest record that is not yet
// in the database to the one being written. Bounded by Limits::bytes.
//
// A record that finds its buffer full moves on to the next: a spare one that the background thread has
// prepared, or, if callers were faster, one that the caller makes. Where no file can be made, the next buffer
// is in memory alone, until prepare() succeeds.
//
// Threads: reserve(), define_key(), close(), last_sequence() by callers; the rest by the background thread.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ranklog/schema/tail.hpp"
#include "steady_time.hpp"
#include "tail_buffer.hpp"

namespace ranklog::writer {

class TailQueue {
 public:
  struct Files {
    std::filesystem::path rank_file;
    std::string header;
    TailMode mode = TailMode::kAppend;
  };
  struct Limits {
    std::size_t bytes = std::size_t{64} << 20;
    bool wait_when_full = true;
    // How long a full queue without any progress holds up a caller before rows are dropped instead.
    std::chrono::milliseconds patience{10'000};
  };
  // `on_pressure` is called, under a lock, when a buffer has become full or nothing has room: the background
  // thread is needed.
  using Pressure = std::function<void()>;

  // Throws Error (kIo) if the first file cannot be created.
  TailQueue(Files files, Limits limits, Pressure on_pressure);

  // ---- Callers ----

  enum class Refusal : std::uint8_t { kNone, kFull, kClosed };
  struct Reservation {
    TailBuffer* buffer = nullptr;
    TailBuffer::Place place;
    Refusal refusal = Refusal::kNone;
  };
  // For one record, which buffer->announce() and buffer->publish() must follow. May wait if all is full.
  [[nodiscard]] Reservation reserve(std::size_t payload_bytes) noexcept {
    Reservation reservation;
    reservation.buffer = current_.load(std::memory_order_acquire);
    const std::size_t bytes = frame_bytes(payload_bytes);
    if (!reservation.buffer->reserve(bytes, true, reservation.place)) [[unlikely]] {
      reserve_slowly(bytes, reservation);
    }
    return reservation;
  }
  // Without waiting for the disk, whether there is room or not. Throws std::bad_alloc.
  [[nodiscard]] Reservation reserve_now(std::size_t payload_bytes);
  // Keys come by id, from 0. The record stands before all that are reserved afterwards.
  void define_key(KeyId key, const KeyPath& path);
  void close() noexcept;
  [[nodiscard]] std::uint64_t last_sequence() const noexcept;  // that was given away

  // ---- The background thread ----

  // Spares, as many as callers are going to need, and a file for what follows if the newest buffer has none.
  // False if the disk refused.
  bool prepare();
  // Why records are in memory alone, or will not survive power loss; 0: neither.
  [[nodiscard]] int error() const;
  // Records wait that only the database can still save.
  [[nodiscard]] bool is_broken() const;
  [[nodiscard]] bool is_half_full() const;

  // The next published records, at most `most` with a number, oldest first. What `visit` sees stays there
  // until release(). Returns the last number so far.
  using Visit = std::function<void(std::string_view payload)>;
  std::uint64_t drain(std::uint64_t most, const Visit& visit);
  [[nodiscard]] bool is_drained() const;
  // All records up to this one, and that many keys, are in the database.
  void release(std::uint64_t watermark, std::size_t keys);
  // The database refuses: nobody shall wait for room. Or no longer.
  void set_hopeless(bool hopeless);

  // Everything published by then and not in memory alone survives power loss afterwards. Returns the number
  // up to which nothing is missing.
  std::uint64_t sync();
  // How many records are in memory alone.
  [[nodiscard]] std::uint64_t in_memory_alone() const;
  // At the end: the spares, and, if all is in the database, the rest.
  void remove_files(bool all) noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Live {
    TailBuffer* buffer = nullptr;
    std::shared_ptr<TailFile> file;  // empty: in memory alone
    std::size_t start = 0;           // of the first record
    std::uint64_t before = 0;        // the last number in earlier buffers
    TailBuffer::End published;       // as far as sync() has found no gap
    std::size_t synced = 0;          // up to this offset
    bool sync_failed = false;
    [[nodiscard]] bool is_sound() const noexcept { return file && !sync_failed && buffer->error() == 0; }
  };

  class Opening;

  bool drain_buffer(std::uint64_t last, const Visit& visit);
  [[nodiscard]] static TailBuffer::End published_part(const Live& live, std::size_t end);
  void reserve_slowly(std::size_t bytes, Reservation& reservation) noexcept;
  bool wait_for_buffer(Lock& lock);
  bool wait_for_room(Lock& lock);
  // A record that is as large as the limit must not be the last one.
  [[nodiscard]] bool has_room() const noexcept { return live_.size() == 1 || live_bytes_ < limits_.bytes; }
  void open_next(Lock& lock, std::size_t bytes, bool may_create);
  [[nodiscard]] bool open_file(Lock& lock, std::shared_ptr<TailFile> file, int& error);
  [[nodiscard]] bool start_file(Lock& lock, const std::shared_ptr<TailFile>& file, int& error);
  void open_memory(std::size_t capacity, int error);
  void push_file(const std::shared_ptr<TailFile>& file, std::size_t start);
  [[nodiscard]] std::uint64_t close_newest() noexcept;
  [[nodiscard]] std::shared_ptr<TailFile> create_file(std::size_t capacity, int& error) noexcept;
  [[nodiscard]] std::shared_ptr<TailFile> take_spare(std::size_t capacity);
  [[nodiscard]] std::shared_ptr<TailFile> release_oldest() noexcept;
  [[nodiscard]] TailBuffer& idle_buffer(std::size_t capacity);
  [[nodiscard]] std::size_t capacity_for(std::size_t bytes) const;
  [[nodiscard]] std::size_t spare_capacity() const;
  [[nodiscard]] std::size_t missing_spares(std::vector<std::shared_ptr<TailFile>>& superfluous);
  [[nodiscard]] bool waits_for_database(const Live& live) const noexcept;
  [[nodiscard]] std::uint64_t last_sequence_locked() const noexcept;

  const Files files_;
  const Limits limits_;
  const Pressure on_pressure_;
  std::atomic<unsigned> next_index_{1};
  std::atomic<int> error_{0};
  std::atomic<TailBuffer*> current_{nullptr};

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable room_;
  bool closed_ = false;
  bool hopeless_ = false;
  std::optional<SteadyTime> opening_since_;  // somebody makes the next buffer
  std::optional<SteadyTime> full_since_;
  std::vector<std::unique_ptr<TailBuffer>> buffers_;  // all there are
  std::vector<TailBuffer*> idle_;
  std::deque<Live> live_;  // oldest first; the last is the current one
  std::size_t live_bytes_ = 0;
  std::vector<std::shared_ptr<TailFile>> spares_;
  std::size_t capacity_;            // of the next buffers
  std::uint64_t filled_bytes_ = 0;  // since filled_since_
  SteadyTime filled_since_;
  std::deque<std::string> key_frames_;  // of the keys that are not in the database, by id
  std::size_t first_key_ = 0;           // the id of the first of them

  // The background thread's: where it drains, in live_.
  struct Cursor {
    std::size_t index = 0;
    std::size_t offset = 0;
    std::uint64_t sequence = 0;  // the last one seen
  };
  Cursor cursor_;
  std::uint64_t watermark_ = 0;  // guarded
};

}  // namespace ranklog::writer
