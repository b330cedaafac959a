#pragma once
// Rows that were logged with one set of keys, column by column: what a chunk holds.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ranklog/schema/stream.hpp"
#include "ranklog/schema/value.hpp"

namespace ranklog {

// Index of a key in RankFile::keys(); local to one rank file.
using KeyId = std::uint32_t;

// The values of one key, one a row: [rows].
class Column {
 public:
  explicit Column(KeyId key) : key_(key) {}
  // From its parts: a kind and 64 bits a row; for a text the bits are its index in `texts`.
  Column(KeyId key, std::vector<std::uint8_t> kinds, std::vector<std::uint64_t> bits,
         std::vector<std::string> texts)
      : key_(key), kinds_(std::move(kinds)), bits_(std::move(bits)), texts_(std::move(texts)) {}

  [[nodiscard]] KeyId key() const noexcept { return key_; }
  [[nodiscard]] std::size_t size() const noexcept { return kinds_.size(); }
  // The view's text is owned by the column.
  [[nodiscard]] ValueView at(std::size_t row) const noexcept {
    const auto kind = static_cast<ValueKind>(kinds_[row]);
    if (kind == ValueKind::kString) return ValueView(std::string_view(texts_[bits_[row]]));
    if (kind == ValueKind::kJson) return ValueView::json(texts_[bits_[row]]);
    return ValueView::scalar(kind, bits_[row]);
  }
  void push_back(ValueView value) {
    kinds_.push_back(static_cast<std::uint8_t>(value.kind()));
    if (value.has_text()) {
      bits_.push_back(texts_.size());
      texts_.emplace_back(value.text());
    } else {
      bits_.push_back(value.bits());
    }
  }

  void push_back_number(ValueKind kind, std::uint64_t bits) {
    kinds_.push_back(static_cast<std::uint8_t>(kind));
    bits_.push_back(bits);
  }
  void clear() noexcept {  // and keep the memory
    kinds_.clear();
    bits_.clear();
    texts_.clear();
  }

  // The parts, for code that works on whole columns.
  [[nodiscard]] std::span<const std::uint8_t> kinds() const noexcept { return kinds_; }
  [[nodiscard]] std::span<const std::uint64_t> bits() const noexcept { return bits_; }
  [[nodiscard]] std::span<const std::string> texts() const noexcept { return texts_; }

 private:
  KeyId key_;
  std::vector<std::uint8_t> kinds_;
  std::vector<std::uint64_t> bits_;  // or the index into texts_
  std::vector<std::string> texts_;
};

// A group that has grown to this is followed by another: below the limits of a chunk (chunk_codec.hpp), few
// enough to merge thousands of ranks in bounded memory, and enough that larger chunks take hardly less space.
inline constexpr std::size_t kMaxGroupRows = 4096;
inline constexpr std::size_t kMaxGroupValues = std::size_t{1} << 20;
inline constexpr std::size_t kMaxGroupTextBytes = std::size_t{1} << 26;

struct RowGroup {
  Stream stream = Stream::kHistory;
  // One entry a row. `sequence` numbers the log() calls of the file from 1, in the order in which they
  // returned; times are Unix nanoseconds on the rank's own clock.
  std::vector<std::uint64_t> sequence;
  std::vector<std::int64_t> step;
  std::vector<std::int64_t> time_ns;
  std::vector<Column> columns;  // each of size rows()

  [[nodiscard]] std::size_t rows() const noexcept { return sequence.size(); }
  void clear_rows() noexcept {  // and keep columns and memory
    sequence.clear();
    step.clear();
    time_ns.clear();
    for (Column& column : columns) column.clear();
  }
};

// What is known of one key in one row group without decoding it.
struct SeriesStats {
  KeyId key = 0;
  std::uint64_t count = 0;      // values of any kind
  std::uint64_t numbers = 0;    // float64 and int64 that are not NaN: min and max are over these
  std::uint64_t nan_count = 0;  // float64 NaN
  double min = 0;
  double max = 0;
  ValueKind last_kind = ValueKind::kNull;
  double last = 0;  // of the last row, if last_kind is a number or a bool
};

struct RowGroupInfo {
  std::int64_t id = 0;  // chunk id; negative for rows that are still in the tail
  Stream stream = Stream::kHistory;
  std::uint64_t rows = 0;
  std::uint64_t first_sequence = 0, last_sequence = 0;
  std::int64_t min_step = 0, max_step = 0;
  std::int64_t min_time_ns = 0, max_time_ns = 0;
  std::uint64_t stored_bytes = 0;
  std::vector<SeriesStats> series;
};

// The statistics of a group; `id` and `stored_bytes` are left 0.
[[nodiscard]] RowGroupInfo describe(const RowGroup& group);

}  // namespace ranklog
