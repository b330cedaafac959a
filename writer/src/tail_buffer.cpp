#include "tail_buffer.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include "ranklog/schema/tail.hpp"

namespace ranklog::writer {
namespace {

using Word = std::atomic_ref<std::uint32_t>;

Word length_of(char* frame) noexcept {
  return Word(*reinterpret_cast<std::uint32_t*>(frame));
}
Word checksum_of(char* frame) noexcept {
  return Word(*reinterpret_cast<std::uint32_t*>(frame + sizeof(std::uint32_t)));
}

}  // namespace

char* TailBuffer::Place::payload() const noexcept {
  return frame + kFrameHeadBytes;
}

void TailBuffer::open(std::shared_ptr<TailFile> file, std::size_t start_offset,
                      std::uint64_t last_sequence) noexcept {
  file_ = std::move(file);
  write_through_ = !file_->is_mapped();
  error_.store(0, std::memory_order_relaxed);
  start(file_->memory().data(), start_offset, last_sequence);
}

void TailBuffer::open(TailMemory memory, int error, std::uint64_t last_sequence) noexcept {
  own_memory_ = std::move(memory);
  write_through_ = false;
  error_.store(error, std::memory_order_relaxed);
  start(own_memory_.data(), 0, last_sequence);
}

void TailBuffer::start(char* data, std::size_t offset, std::uint64_t last_sequence) noexcept {
  data_ = data;
  last_sequence_ = last_sequence;
  in_memory_from_.store(std::numeric_limits<std::uint64_t>::max(), std::memory_order_relaxed);
  state_.store(offset / kUnit, std::memory_order_seq_cst);
}

TailBuffer::End TailBuffer::close() noexcept {
  state_.fetch_or(kClosed, std::memory_order_seq_cst);
  return end();
}

std::shared_ptr<TailFile> TailBuffer::empty() noexcept {
  own_memory_ = TailMemory();
  return std::move(file_);
}

TailBuffer::End TailBuffer::end() const noexcept {
  const std::uint64_t state = state_.load(std::memory_order_seq_cst);
  return {(state & kOffsetMask) * kUnit, last_sequence_ + ((state & kCountMask) >> kCountShift)};
}

void TailBuffer::fail(int error_number, std::uint64_t sequence) noexcept {
  error_.store(error_number, std::memory_order_relaxed);
  std::uint64_t first = in_memory_from();
  while (sequence < first && !in_memory_from_.compare_exchange_weak(first, sequence)) continue;
}

void TailBuffer::announce(const Place& place, std::size_t payload_bytes) noexcept {
  length_of(place.frame).store(static_cast<std::uint32_t>(payload_bytes), std::memory_order_relaxed);
}

int TailBuffer::publish(const Place& place, std::size_t payload_bytes) noexcept {
  const std::string_view payload(place.payload(), payload_bytes);
  return publish(place, payload, frame_checksum(payload));
}

int TailBuffer::publish(const Place& place, std::string_view payload, std::uint32_t checksum) noexcept {
  int error = error_.load(std::memory_order_relaxed);
  if (write_through_ && error == 0) error = write(place, payload, checksum);
  if (error != 0) fail(error, place.sequence);
  // Nothing of the buffer may be touched afterwards.
  checksum_of(place.frame).store(checksum, std::memory_order_release);
  return error;
}

// A kill ends a write only between pages. So a record on one page goes at once; of another, the checksum goes
// last, as it does in memory: cut off, it is a record that was not finished, and says where it ends.
int TailBuffer::write(const Place& place, std::string_view payload, std::uint32_t checksum) const noexcept {
  constexpr std::size_t kPage = 4096;
  const std::size_t last = place.offset + kFrameHeadBytes + payload.size() - 1;
  const bool on_one_page = place.offset / kPage == last / kPage;
  const std::array<std::uint32_t, 2> head = {static_cast<std::uint32_t>(payload.size()),
                                             on_one_page ? checksum : 0};
  static_assert(sizeof head == kFrameHeadBytes);
  const auto bytes = [](const auto& value) {
    return std::string_view(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const int error = file_->write(place.offset, bytes(head), payload);
  if (error != 0 || on_one_page) return error;
  return file_->write(place.offset + sizeof(std::uint32_t), bytes(checksum), {});
}

std::string_view TailBuffer::next(std::size_t& offset) const noexcept {
  char* frame = data_ + offset;
  if (checksum_of(frame).load(std::memory_order_acquire) == 0) return {};
  const std::string_view payload(frame + kFrameHeadBytes, length_of(frame).load(std::memory_order_relaxed));
  offset += frame_bytes(payload.size());
  return payload;
}

}  // namespace ranklog::writer
