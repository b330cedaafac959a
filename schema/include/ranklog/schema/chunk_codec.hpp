#pragma once
// A row group as bytes and back (FORMAT.md, "Chunks"): each column by the shortest of several encodings, then
// zstd, under a checksum.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ranklog/schema/row_group.hpp"

namespace ranklog {

// A chunk holds at most this much, so that a reader can refuse more: rows, values (rows x columns, not
// counting sequence, step and time), and bytes before compression. RowGroupBuilder keeps below all of them.
inline constexpr std::uint64_t kMaxChunkRows = std::uint64_t{1} << 16;
inline constexpr std::uint64_t kMaxChunkValues = std::uint64_t{1} << 22;
inline constexpr std::uint64_t kMaxChunkRawBytes = std::uint64_t{1} << 29;

// Encodes the chunks of one file. It remembers which encoding suited each series and searches anew only now
// and then; how it came to a chunk's bytes makes no difference to who reads them. Not for two threads at
// once.
class ChunkEncoder {
 public:
  // Throws Error (kUsage) for a group above the limits.
  [[nodiscard]] std::string encode(const RowGroup& group);

 private:
  friend class GroupEncoder;
  struct Choice {
    std::uint8_t code = 0;
    std::uint8_t parameter = 0;
  };
  // By key and value kind; and, for sequence, step and time, by the first key of the group.
  std::unordered_map<std::uint64_t, Choice> choices_;
  unsigned chunks_until_search_ = 0;
};

// A chunk that is ready for the table `chunk`.
struct EncodedChunk {
  RowGroupInfo info;
  std::string stats;
  std::string data;
};
[[nodiscard]] EncodedChunk encode(const RowGroup& group, ChunkEncoder& encoder);

// One group by itself.
[[nodiscard]] inline std::string encode_chunk(const RowGroup& group) {
  return ChunkEncoder().encode(group);
}

// Throws Error (kDamaged) for bytes that encode_chunk did not make, in time and memory bounded by `max_rows`,
// the limits above and the size of the input.
[[nodiscard]] RowGroup decode_chunk(std::string_view bytes, std::uint64_t max_rows = kMaxChunkRows);
// Only the columns of these keys, which ascend; the others are checked (they are under the checksum) but not
// decoded.
[[nodiscard]] RowGroup decode_chunk(std::string_view bytes, std::span<const KeyId> keys,
                                    std::uint64_t max_rows = kMaxChunkRows);

// The statistics of all series, and once more the ranges of the group, so that its checksum covers them too.
[[nodiscard]] std::string encode_stats(const RowGroupInfo& info);
// Fills info.series. Throws Error (kDamaged) for bytes that encode_stats did not make, and for ranges and row
// count other than those in `info`.
void decode_stats(std::string_view bytes, RowGroupInfo& info);

}  // namespace ranklog
