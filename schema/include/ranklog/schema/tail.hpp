#pragma once
// The tail: what has been logged and is not yet in a chunk (FORMAT.md, "Tail"). Append-only segments beside
// the database; a record is whole or is not there.

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ranklog/schema/identity.hpp"
#include "ranklog/schema/key_path.hpp"
#include "ranklog/schema/operation.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "ranklog/schema/row_group.hpp"

namespace ranklog {

struct TailField {
  KeyId key = 0;
  ValueView value;
};

// What every segment begins with: enough to know whose tail it is.
[[nodiscard]] std::string encode_tail_header(std::string_view launch_token, int rank);

struct TailStart {
  enum class Kind : std::uint8_t {
    kOwn,         // of this launch and rank
    kOther,       // of another
    kUnfinished,  // a segment that was just created
    kDamaged,     // own but for a few bytes
  };
  Kind kind = Kind::kUnfinished;
  std::size_t bytes = 0;  // length of the header: where the records begin
};
// How a whole segment begins. Throws Error: kNotOurs (no tail segment), kVersion (named), kDamaged (nobody
// can tell whose it is).
[[nodiscard]] TailStart find_tail_start(std::string_view segment, std::string_view launch_token, int rank);

// A record's payload is at most this long.
inline constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 28;

// A record's frame: its head (u32 length, u32 checksum), the payload, and zero bytes up to a multiple of
// kFrameAlignment.
inline constexpr std::size_t kFrameHeadBytes = 8;
inline constexpr std::size_t kFrameAlignment = 8;
[[nodiscard]] constexpr std::size_t frame_bytes(std::size_t payload_bytes) noexcept {
  return (kFrameHeadBytes + payload_bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}
// Never 0, which stands in the head of a record that is still being written.
[[nodiscard]] std::uint32_t frame_checksum(std::string_view payload) noexcept;

// Payloads, for who places the frame himself. `out` has room for row_payload_bytes().
[[nodiscard]] std::size_t row_payload_bytes(std::span<const TailField> fields) noexcept;
void write_row_payload(char* out, std::uint64_t sequence, std::int64_t step, std::int64_t time_ns,
                       std::span<const TailField> fields, Stream stream = Stream::kHistory) noexcept;

// The payload of a row of few bytes, built where the processor has it at hand: what log() does for most rows.
// A checksum over bytes that were just written to memory that is not would wait for it.
class ShortRow {
 public:
  // False if it has no room for the field: the row is one for write_row_payload().
  [[nodiscard]] bool add(KeyId key, const ValueView& value) noexcept {
    const std::string_view text = value.text();
    if (sizeof bytes_ - size_ < kMostFieldBytes + text.size()) return false;
    put(key);
    put(static_cast<std::uint8_t>(value.kind()));
    if (value.is_number()) {
      put(value.bits());
    } else if (value.kind() == ValueKind::kBool) {
      put(static_cast<std::uint8_t>(value.as_bool() ? 1 : 0));
    } else if (value.has_text()) {
      put(static_cast<std::uint32_t>(text.size()));
      text.copy(bytes_ + size_, text.size());
      size_ += text.size();
    }
    ++fields_;
    return true;
  }
  void finish(Stream stream, std::uint64_t sequence, std::int64_t step, std::int64_t time_ns) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::string_view payload() const noexcept { return {bytes_, size_}; }

 private:
  static constexpr std::size_t kHeadBytes = 1 + 3 * sizeof(std::uint64_t) + sizeof(std::uint32_t);
  static constexpr std::size_t kMostFieldBytes = sizeof(KeyId) + 1 + sizeof(std::uint64_t);  // and a text
  template <class Integer>
  void put(Integer value) noexcept {
    std::memcpy(bytes_ + size_, &value, sizeof(value));
    size_ += sizeof(value);
  }

  std::size_t size_ = kHeadBytes;
  std::uint32_t fields_ = 0;
  char bytes_[1000];  // not initialized before it is used
};
[[nodiscard]] std::string operation_payload(std::int64_t time_ns, const OperationBody& body);  // sequence: 0
void set_operation_sequence(char* payload, std::uint64_t sequence) noexcept;

// Each appends one framed record to `out`. A key's record must stand before the first row that uses it, in
// its segment or an earlier one, unless the key is in the database. Throws Error (kUsage), with `out` as it
// was, for a record that would be longer than kMaxRecordBytes.
void append_key_record(std::string& out, KeyId key, const KeyPath& path);
void append_row_record(std::string& out, std::uint64_t sequence, std::int64_t step, std::int64_t time_ns,
                       std::span<const TailField> fields, Stream stream = Stream::kHistory);
void append_operation_record(std::string& out, const Operation& operation);

struct TailKey {
  KeyId key = 0;
  KeyPath path;
};
struct TailRow {
  std::uint64_t sequence = 0;
  std::int64_t step = 0;
  std::int64_t time_ns = 0;
  std::vector<TailField> fields;  // views into the bytes that are read
  Stream stream = Stream::kHistory;
};
using TailRecord = std::variant<TailKey, TailRow, Operation>;

// 0 for a key's record, which has none.
[[nodiscard]] std::uint64_t sequence_of_record(std::string_view payload) noexcept;
// Empty for one that makes no sense.
[[nodiscard]] std::optional<TailRecord> decode_tail_record(std::string_view payload);

// A row whose values are numbers, as most are, read where it stands in its record.
class NumberRow {
 public:
  // Empty for any other record.
  [[nodiscard]] static std::optional<NumberRow> find(std::string_view payload) noexcept;

  [[nodiscard]] Stream stream() const noexcept;
  [[nodiscard]] std::uint64_t sequence() const noexcept { return at<std::uint64_t>(1); }
  [[nodiscard]] std::int64_t step() const noexcept { return at<std::int64_t>(9); }
  [[nodiscard]] std::int64_t time_ns() const noexcept { return at<std::int64_t>(17); }
  [[nodiscard]] std::size_t fields() const noexcept { return (payload_.size() - kHeadBytes) / kFieldBytes; }
  [[nodiscard]] KeyId key(std::size_t field) const noexcept { return at<KeyId>(place_of(field)); }
  [[nodiscard]] ValueKind kind(std::size_t field) const noexcept {
    return static_cast<ValueKind>(payload_[place_of(field) + sizeof(KeyId)]);
  }
  [[nodiscard]] std::uint64_t bits(std::size_t field) const noexcept {
    return at<std::uint64_t>(place_of(field) + sizeof(KeyId) + 1);
  }

 private:
  static constexpr std::size_t kHeadBytes = 1 + 3 * sizeof(std::uint64_t) + sizeof(std::uint32_t);
  static constexpr std::size_t kFieldBytes = sizeof(KeyId) + 1 + sizeof(std::uint64_t);

  explicit NumberRow(std::string_view payload) noexcept : payload_(payload) {}
  static constexpr std::size_t place_of(std::size_t field) noexcept {
    return kHeadBytes + field * kFieldBytes;
  }
  template <class T>
  [[nodiscard]] T at(std::size_t place) const noexcept {
    T value;
    std::memcpy(&value, payload_.data() + place, sizeof(T));
    return value;
  }

  std::string_view payload_;
};

// Reads records from bytes in memory: a whole segment without its header. Records of types that a later
// writer may add are passed over. Stops at the first record that is cut off, unfinished or damaged.
class TailReader {
 public:
  explicit TailReader(std::string_view bytes) : bytes_(bytes), scan_budget_(16 * bytes.size()) {}
  [[nodiscard]] std::optional<TailRecord> next();

  enum class Gap : std::uint8_t {
    kEnd,         // no whole record follows: a torn end, and no damage
    kUnfinished,  // a record that was never logged: its writer died in the middle
    kDamage,
    kDamagedEnd,  // no whole record follows one that was whole once, or that a power loss tore
    kGivenUp,     // so much is damaged that whole records may follow that were not looked for
  };
  // After next() has returned nothing: goes to the next whole record, if one follows (kUnfinished, kDamage),
  // and tells what it passed.
  [[nodiscard]] Gap skip();
  [[nodiscard]] std::size_t position() const noexcept { return position_; }  // of the first byte not consumed
  [[nodiscard]] bool at_end() const noexcept { return position_ == bytes_.size(); }
  // Records of later types so far.
  [[nodiscard]] std::uint64_t passed_over() const noexcept { return passed_over_; }

 private:
  bool stop_at(std::size_t position);
  bool may_checksum(std::uint64_t bytes);

  std::string_view bytes_;
  std::size_t position_ = 0;
  std::uint64_t passed_over_ = 0;
  std::uint64_t scan_budget_;  // bytes that may still be checksummed in vain: hostile ones take no longer
  bool given_up_ = false;
};

// Collects rows into groups, one a stream and set of keys, in order of arrival; a group that has grown large
// is followed by another of the same keys. Both the writer (to seal) and the reader (to show the tail) use
// it. If a row has a key twice, its later value counts.
class RowGroupBuilder {
 public:
  // Groups go to `sink` as soon as they are large, and their memory is used again; without a sink they are
  // kept for take().
  using Sink = std::function<void(const RowGroup&)>;
  explicit RowGroupBuilder(Sink sink = {}) : sink_(std::move(sink)) {}
  RowGroupBuilder(RowGroupBuilder&&) = default;
  RowGroupBuilder& operator=(RowGroupBuilder&&) = default;

  void add(const TailRow& row);
  void add(const NumberRow& row);
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::vector<RowGroup> take();  // leaves it empty
  void flush();                                // what is left goes to the sink

 private:
  static constexpr std::uint32_t kNoColumn = UINT32_MAX;
  // Where the fields of a row with these keys, in this order, go.
  struct Layout {
    std::size_t set = 0;                   // index into sets_
    std::vector<std::uint32_t> field_of;   // for each column: index of the field that fills it
    std::vector<std::uint32_t> column_of;  // for each field: its column, or kNoColumn
  };
  // The group that rows with one set of keys go to now.
  struct KeySet {
    std::size_t group = 0;  // index into groups_
    std::size_t text_bytes = 0;
  };

  // What the rows of one stream look like.
  struct Layouts {
    std::map<std::vector<KeyId>, Layout> by_order;     // by keys in the order of the fields
    std::map<std::vector<KeyId>, std::size_t> of_set;  // by keys, sorted: index into sets_
  };

  const Layout& layout_of(Stream stream, std::size_t fields, auto key_of);
  const Layout& find_layout(Stream stream);
  [[nodiscard]] RowGroup& group_for_row(KeySet& set);
  void start_group(KeySet& set, Stream stream, const std::vector<KeyId>& keys);

  Sink sink_;
  std::vector<RowGroup> groups_;
  std::size_t rows_ = 0;
  std::array<Layouts, kStreams.size()> layouts_;  // by stream
  std::vector<KeySet> sets_;
  std::vector<KeyId> order_;  // keys of the last row, which most rows are like
  Stream order_stream_ = Stream::kHistory;
  const Layout* layout_ = nullptr;  // of that row
};

}  // namespace ranklog
