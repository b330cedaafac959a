#pragma once
// Where records are put, without a lock: a caller reserves a place, writes its record there, and publishes
// it.
//
// One atomic word says how far the buffer is taken and by how many numbered records, so that places and
// sequence numbers have the same order. A record's length is stored first and its checksum last: whoever
// finds the file after the process has died finds each record whole or not at all, and what lies behind one
// that was not finished.
//
// A caller that read a pointer to a buffer may find that it has been closed, emptied and opened again
// meanwhile: buffers are reused, with the same capacity, and never freed while callers may come, so that this
// is a reservation like any other.
//
// Threads: reserve(), publish() and end() by any. open() and close() under the lock of TailQueue. The rest by
// the background thread.

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "tail_file.hpp"

namespace ranklog::writer {

class TailBuffer {
 public:
  struct Place {
    char* frame = nullptr;
    std::size_t offset = 0;
    std::uint64_t sequence = 0;  // of the record; of the next one, for a place without a number
    [[nodiscard]] char* payload() const noexcept;
  };
  explicit TailBuffer(std::size_t capacity) noexcept : capacity_(capacity) {}

  struct End {
    std::size_t offset = 0;
    std::uint64_t sequence = 0;  // of the last numbered record that lies before
  };

  // One of the two, with this capacity; without a file what is published is in memory alone, for the reason
  // `error`. Records begin at `start` and are numbered from `last_sequence` + 1 on.
  void open(std::shared_ptr<TailFile> file, std::size_t start, std::uint64_t last_sequence) noexcept;
  void open(TailMemory memory, int error, std::uint64_t last_sequence) noexcept;
  // No place is given away afterwards.
  End close() noexcept;
  // No caller is in the buffer, and none of what was in it is needed.
  [[nodiscard]] std::shared_ptr<TailFile> empty() noexcept;

  // `bytes`: of the whole frame. False if there is no room, or if the buffer is closed.
  [[nodiscard]] bool reserve(std::size_t bytes, bool numbered, Place& place) noexcept {
    std::uint64_t state = state_.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
      const std::uint64_t offset = (state & kOffsetMask) + bytes / kUnit;
      if ((state & kClosed) != 0 || offset * kUnit > capacity_) return false;
      next = (state & ~kOffsetMask) + offset + (numbered ? kOne : 0);
    } while (
        !state_.compare_exchange_weak(state, next, std::memory_order_seq_cst, std::memory_order_relaxed));
    place.offset = (state & kOffsetMask) * kUnit;
    place.frame = data_ + place.offset;
    place.sequence = last_sequence_ + ((state & kCountMask) >> kCountShift) + 1;
    return true;
  }

  // Before the payload is written, and after it. The latter returns 0 if the record survives this process,
  // else why it is in memory alone.
  static void announce(const Place& place, std::size_t payload_bytes) noexcept;
  int publish(const Place& place, std::size_t payload_bytes) noexcept;
  int publish(const Place& place, std::string_view payload, std::uint32_t checksum) noexcept;  // of the frame

  [[nodiscard]] End end() const noexcept;

  // Why records are in memory alone, from that sequence number on; 0: none is.
  [[nodiscard]] int error() const noexcept { return error_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t in_memory_from() const noexcept {
    return in_memory_from_.load(std::memory_order_relaxed);
  }

  // The payload at `offset`, which then moves behind it; empty if nothing is published there yet.
  [[nodiscard]] std::string_view next(std::size_t& offset) const noexcept;

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  static constexpr std::size_t kUnit = 8;
  static constexpr unsigned kCountShift = 32;
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kCountShift) - 1;
  static constexpr std::uint64_t kOne = std::uint64_t{1} << kCountShift;
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kCountMask = ~kOffsetMask & ~kClosed;

  [[nodiscard]] int write(const Place& place, std::string_view payload,
                          std::uint32_t checksum) const noexcept;
  void fail(int error_number, std::uint64_t sequence) noexcept;
  void start(char* data, std::size_t offset, std::uint64_t last_sequence) noexcept;

  const std::size_t capacity_;
  alignas(64) std::atomic<std::uint64_t> state_{kClosed};
  // Changed only while the buffer is closed.
  alignas(64) char* data_ = nullptr;
  std::uint64_t last_sequence_ = 0;
  bool write_through_ = false;
  TailMemory own_memory_;
  std::shared_ptr<TailFile> file_;

  std::atomic<int> error_{0};
  std::atomic<std::uint64_t> in_memory_from_{0};
};

}  // namespace ranklog::writer
