#pragma once
// The tail: what has been logged and is not yet in a chunk (FORMAT.md, "Tail"). Append-only segments beside
// the database; a record is whole or is not there.

#include <cstdint>
#include <filesystem>
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

// Each appends one framed record (length, checksum, payload) to `out`; no allocation beyond `out` for rows.
// A key's record must stand in the same segment before the first row that uses it.
void append_key_record(std::string& out, KeyId key, const KeyPath& path);
void append_row_record(std::string& out, std::uint64_t sequence, std::int64_t step, std::int64_t time_ns,
                       std::span<const TailField> fields);
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
};
using TailRecord = std::variant<TailKey, TailRow, Operation>;

// Reads records from bytes in memory (a whole segment without its header, or what a writer has queued). Stops
// at the first record that is cut off or whose checksum fails.
class TailReader {
 public:
  explicit TailReader(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] std::optional<TailRecord> next();
  [[nodiscard]] std::size_t position() const noexcept { return position_; }  // of the first byte not consumed
  [[nodiscard]] bool at_end() const noexcept { return position_ == bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t position_ = 0;
};

// Collects rows into groups, one a set of keys, in order of arrival. Both the writer (to seal) and the reader
// (to show the tail) use it.
class RowGroupBuilder {
 public:
  void add(const TailRow& row);
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::vector<RowGroup> take();  // leaves it empty

 private:
  std::vector<RowGroup> groups_;
  std::size_t rows_ = 0;
};

}  // namespace ranklog
