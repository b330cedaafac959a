#pragma once
// What tests put into a TailQueue: rows of one number and a text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/schema/tail.hpp"
#include "tail_queue.hpp"

namespace ranklog::test {

// A row that has its place, and is there for others once it is published.
class TailRowOnItsWay {
 public:
  explicit TailRowOnItsWay(writer::TailQueue& queue, std::size_t text_bytes = 100)
      : TailRowOnItsWay(queue.reserve(payload_bytes(text_bytes)), text_bytes) {}
  TailRowOnItsWay(const writer::TailQueue::Reservation& reservation, std::size_t text_bytes)
      : reservation_(reservation), text_(text_bytes, 'x') {
    if (sequence() > 0) writer::TailBuffer::announce(reservation_.place, payload_bytes(text_bytes));
  }

  // 0 if there was no room.
  [[nodiscard]] std::uint64_t sequence() const {
    return reservation_.refusal == writer::TailQueue::Refusal::kNone ? reservation_.place.sequence : 0;
  }
  int publish() {
    const TailField fields[] = {{0, 1.5}, {1, std::string_view(text_)}};
    write_row_payload(reservation_.place.payload(), reservation_.place.sequence, 7, 8, fields);
    return reservation_.buffer->publish(reservation_.place, row_payload_bytes(fields));
  }

  [[nodiscard]] static std::size_t payload_bytes(std::size_t text_bytes) {
    const std::string text(text_bytes, 'x');
    const TailField fields[] = {{0, 1.5}, {1, std::string_view(text)}};
    return row_payload_bytes(fields);
  }

 private:
  const writer::TailQueue::Reservation reservation_;
  const std::string text_;
};

// The numbers of what comes.
inline std::vector<std::uint64_t> drain(writer::TailQueue& queue, std::uint64_t most = 1'000'000) {
  std::vector<std::uint64_t> sequences;
  queue.drain(most, [&](std::string_view payload) {
    if (sequence_of_record(payload) > 0) sequences.push_back(sequence_of_record(payload));
  });
  return sequences;
}

}  // namespace ranklog::test
