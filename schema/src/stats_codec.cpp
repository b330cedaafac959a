#include <limits>

#include "bytes.hpp"
#include "envelope.hpp"
#include "ranklog/schema/chunk_codec.hpp"

namespace ranklog {
namespace {

constexpr std::size_t kLeastSeriesBytes = 4 + 3 * 8 + 1;
constexpr auto kLastKind = static_cast<std::uint8_t>(ValueKind::kJson);

// What is in the chunk table's columns too; here under the checksum.
void append_ranges(std::string& out, const RowGroupInfo& info) {
  append_fixed(out, static_cast<std::uint8_t>(info.stream));
  append_varint(out, info.rows);
  append_varint(out, info.first_sequence);
  append_varint(out, info.last_sequence);
  append_fixed(out, info.min_step);
  append_fixed(out, info.max_step);
  append_fixed(out, info.min_time_ns);
  append_fixed(out, info.max_time_ns);
}

SeriesStats read_series(ByteReader& in) {
  SeriesStats stats;
  const std::uint64_t key = in.varint();
  stats.count = in.varint();
  stats.numbers = in.varint();
  stats.nan_count = in.varint();
  stats.min = in.fixed<double>();
  stats.max = in.fixed<double>();
  const auto kind = in.fixed<std::uint8_t>();
  stats.last = in.fixed<double>();
  if (key > std::numeric_limits<KeyId>::max() || kind > kLastKind) {
    throw Error(ErrorCode::kDamaged, "unknown key or value kind");
  }
  stats.key = static_cast<KeyId>(key);
  stats.last_kind = static_cast<ValueKind>(kind);
  return stats;
}

}  // namespace

std::string encode_stats(const RowGroupInfo& info) {
  std::string raw;
  append_ranges(raw, info);
  append_varint(raw, info.series.size());
  for (const SeriesStats& stats : info.series) {
    append_varint(raw, stats.key);
    append_varint(raw, stats.count);
    append_varint(raw, stats.numbers);
    append_varint(raw, stats.nan_count);
    append_fixed(raw, stats.min);
    append_fixed(raw, stats.max);
    append_fixed(raw, static_cast<std::uint8_t>(stats.last_kind));
    append_fixed(raw, stats.last);
  }
  return seal_envelope(raw);
}

void decode_stats(std::string_view bytes, RowGroupInfo& info) {
  const std::string raw = open_envelope(bytes, kMaxChunkRawBytes);
  std::string ranges;
  append_ranges(ranges, info);
  if (!raw.starts_with(ranges)) {
    throw Error(ErrorCode::kDamaged, "the stream, row count or ranges differ from those in the statistics");
  }
  ByteReader in(std::string_view(raw).substr(ranges.size()));
  const std::uint64_t count = in.varint();
  if (count > in.remaining() / kLeastSeriesBytes) {
    throw Error(ErrorCode::kDamaged, "it claims more series than it can hold");
  }
  std::vector<SeriesStats> series;
  series.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) series.push_back(read_series(in));
  in.expect_end();
  info.series = std::move(series);
}

}  // namespace ranklog
