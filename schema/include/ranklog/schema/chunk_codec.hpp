#pragma once
// A row group as bytes and back (FORMAT.md, "Chunks"): columns, encoded by kind, then zstd, with a checksum.

#include <cstdint>
#include <string>
#include <string_view>

#include "ranklog/schema/row_group.hpp"

namespace ranklog {

// A chunk holds at most this much, so that a reader can refuse more: values (rows x columns, not counting
// sequence, step and time), and bytes before compression. RowGroupBuilder keeps far below both.
inline constexpr std::uint64_t kMaxChunkValues = std::uint64_t{1} << 26;
inline constexpr std::uint64_t kMaxChunkRawBytes = std::uint64_t{1} << 29;

// Throws Error (kUsage) for a group above the limits.
[[nodiscard]] std::string encode_chunk(const RowGroup& group);

// Throws Error (kDamaged) for bytes that encode_chunk did not make, in time and memory bounded by `max_rows`,
// the limits above and the size of the input.
[[nodiscard]] RowGroup decode_chunk(std::string_view bytes, std::uint64_t max_rows = 1u << 24);

// The statistics of all series, and once more the ranges of the group, so that its checksum covers them too.
[[nodiscard]] std::string encode_stats(const RowGroupInfo& info);
// Fills info.series. Throws Error (kDamaged) for bytes that encode_stats did not make, and for ranges and row
// count other than those in `info`.
void decode_stats(std::string_view bytes, RowGroupInfo& info);

}  // namespace ranklog
