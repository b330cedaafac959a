#pragma once
// The tail: what has been logged and is not yet in a chunk (FORMAT.md, "Tail"). Append-only segments beside
// the database; a record is whole or is not there.

#include <array>
#include <cstdint>
#include <filesystem>
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
  void add(const TailRow& row);
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::vector<RowGroup> take();  // leaves it empty

 private:
  // Where the fields of a row with these keys, in this order, go.
  struct Layout {
    std::size_t set = 0;                  // index into sets_
    std::vector<std::uint32_t> field_of;  // for each column: index of the field that fills it
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

  const Layout& layout_of(const TailRow& row);
  void start_group(KeySet& set, Stream stream, const std::vector<KeyId>& keys);

  std::vector<RowGroup> groups_;
  std::size_t rows_ = 0;
  std::array<Layouts, kStreams.size()> layouts_;  // by stream
  std::vector<KeySet> sets_;
  std::vector<KeyId> order_;  // of the row being added
};

}  // namespace ranklog
