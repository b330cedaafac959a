#include "ranklog/schema/chunk_codec.hpp"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "bytes.hpp"
#include "envelope.hpp"
#include "ranklog/schema/error.hpp"
#include "sample_rows.hpp"
#include "sample_series.hpp"

namespace ranklog {
namespace {

using test::awkward_group;
using test::group_of;
using test::kSeries;
using test::same_group;
using test::Series;

RowGroup ordinary_group(std::size_t rows) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise;
  RowGroup group;
  Column loss(0);
  Column epoch(1);
  for (std::size_t i = 0; i < rows; ++i) {
    group.sequence.push_back(i + 1);
    group.step.push_back(static_cast<std::int64_t>(i));
    group.time_ns.push_back(1'700'000'000'000'000'000 + static_cast<std::int64_t>(i) * 10'000'000);
    loss.push_back(static_cast<float>(1.0 / static_cast<double>(i + 1) + noise(random) * 1e-3));
    epoch.push_back(static_cast<std::int64_t>(i / 100));
  }
  group.columns = {loss, epoch};
  return group;
}

// Columns that are written as indices of their distinct values.
RowGroup dictionary_group(std::size_t rows) {
  std::mt19937_64 random(2);
  RowGroup group;
  Column number(0);
  Column text(1);
  for (std::size_t i = 0; i < rows; ++i) {
    group.sequence.push_back(i + 1);
    group.step.push_back(static_cast<std::int64_t>(i));
    group.time_ns.push_back(static_cast<std::int64_t>(random() % 1'000'000));
    number.push_back(std::sqrt(static_cast<double>(random() % 5)));
    text.push_back(random() % 2 == 0 ? "warm-up" : "steady");
  }
  group.columns = {number, text};
  return group;
}

// Bytes under a right checksum, so that only what is inside can be refused.
std::string sealed(std::string_view raw, bool compressed = true) {
  std::string out(5 + ZSTD_compressBound(raw.size()), '\0');
  if (compressed) {
    out.resize(5 + ZSTD_compress(out.data() + 5, out.size() - 5, raw.data(), raw.size(), 3));
  } else {
    out.replace(4, std::string::npos, "\1" + std::string(raw));
  }
  const auto crc = static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(out.data() + 4), static_cast<uInt>(out.size() - 4)));
  std::memcpy(out.data(), &crc, 4);
  return out;
}

bool is_compressed(std::string_view bytes) {
  return bytes.at(4) == '\0';
}

std::string unsealed(std::string_view bytes) {
  if (!is_compressed(bytes)) return std::string(bytes.substr(5));
  std::string raw(ZSTD_getFrameContentSize(bytes.data() + 5, bytes.size() - 5), '\0');
  ZSTD_decompress(raw.data(), raw.size(), bytes.data() + 5, bytes.size() - 5);
  return raw;
}

void expect_damaged(std::string_view bytes, const std::string& what) {
  try {
    (void)decode_chunk(bytes);
    FAIL() << what;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDamaged) << what;
  }
}

TEST(ChunkCodec, EveryValueComesBackBitForBit) {
  const RowGroup group = awkward_group();
  EXPECT_TRUE(same_group(decode_chunk(encode_chunk(group)), group));
}

TEST(ChunkCodec, GroupsWithoutRowsOrColumnsComeBack) {
  EXPECT_TRUE(same_group(decode_chunk(encode_chunk(RowGroup{})), RowGroup{}));
  RowGroup group;
  group.sequence = {4};
  group.step = {2};
  group.time_ns = {1};
  EXPECT_TRUE(same_group(decode_chunk(encode_chunk(group)), group));
}

TEST(ChunkCodec, RandomBitsComeBack) {
  std::mt19937_64 random(11);
  RowGroup group;
  Column doubles(0);
  Column integers(1);
  Column mixed(2);
  for (int i = 0; i < 5000; ++i) {
    group.sequence.push_back(random());
    group.step.push_back(static_cast<std::int64_t>(random()));
    group.time_ns.push_back(static_cast<std::int64_t>(random()));
    doubles.push_back(ValueView::scalar(ValueKind::kFloat64, random()));
    integers.push_back(ValueView::scalar(ValueKind::kInt64, random()));
    mixed.push_back(ValueView::scalar(i % 2 == 0 ? ValueKind::kInt64 : ValueKind::kFloat64, random()));
  }
  group.columns = {doubles, integers, mixed};
  EXPECT_TRUE(same_group(decode_chunk(encode_chunk(group)), group));
}

TEST(ChunkCodec, OrdinaryHistoryShrinks) {
  const RowGroup group = ordinary_group(4096);
  const double plain_bytes = 4096 * 8.0 * 5;  // sequence, step, time and two values
  EXPECT_LT(static_cast<double>(encode_chunk(group).size()), plain_bytes / 8);
}

// --- Every way to write a column, over data that suit it and over data that nearly do.

TEST(ChunkCodec, EverySeriesComesBackBitForBitAtEveryLength) {
  for (const std::size_t rows : {1, 2, 3, 4, 5, 9, 100, 1000, 4096}) {
    std::mt19937_64 random(rows);
    RowGroup group;
    for (std::size_t row = 0; row < rows; ++row) {
      group.sequence.push_back(row + 1);
      group.step.push_back(static_cast<std::int64_t>(row));
      group.time_ns.push_back(static_cast<std::int64_t>(random()));
    }
    KeyId key = 0;
    for (const Series& series : kSeries) {
      Column& column = group.columns.emplace_back(key++);
      for (std::size_t row = 0; row < rows; ++row) column.push_back(series.value(row, random));
      RowGroup alone = group;
      alone.columns = {column};
      EXPECT_TRUE(same_group(decode_chunk(encode_chunk(alone)), alone)) << series.name << ", rows " << rows;
    }
    EXPECT_TRUE(same_group(decode_chunk(encode_chunk(group)), group)) << "rows " << rows;
  }
}

// The encoder keeps the choice of earlier chunks while it fits; data that change must not be bent to it.
TEST(ChunkCodec, ChoicesOfEarlierChunksNeverChangeValues) {
  ChunkEncoder encoder;
  std::mt19937_64 random(3);
  for (int round = 0; round < 100; ++round) {
    const Series& series = kSeries[random() % std::size(kSeries)];
    const RowGroup group = group_of(series, 1000, random());
    EXPECT_TRUE(same_group(decode_chunk(encoder.encode(group)), group)) << series.name;
  }
}

// What each encoding is for, in bytes a value.
TEST(ChunkCodec, SeriesTakeWhatTheyShould) {
  const std::map<std::string, double> kMost{
      {"constant", 0.02}, {"linear integers", 0.02},  {"float32", 3.4},
      {"decimals", 1.8},  {"means of float32s", 3.6}, {"tiny decimals", 0.02},
      {"smooth", 1.5},    {"few values", 0.5},        {"few integers", 0.3},
      {"noise", 6.4},     {"few texts", 0.05}};
  for (const Series& series : kSeries) {
    const auto most = kMost.find(series.name);
    if (most == kMost.end()) continue;
    EXPECT_LT(static_cast<double>(encode_chunk(group_of(series, 4096, 4)).size()) / 4096, most->second)
        << series.name;
  }
}

TEST(ChunkCodec, EveryFlippedByteIsNoticed) {
  for (const RowGroup& group : {awkward_group(), ordinary_group(200)}) {
    const std::string bytes = encode_chunk(group);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
      expect_damaged(flipped, "byte " + std::to_string(i));
    }
  }
}

TEST(ChunkCodec, EveryTruncationIsNoticed) {
  const std::string bytes = encode_chunk(ordinary_group(100));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    expect_damaged(std::string_view(bytes).substr(0, length), "length " + std::to_string(length));
  }
  expect_damaged(bytes + "x", "a byte more");
}

// With a right checksum nothing but the decoder itself stands between hostile bytes and the reader: each must
// decode to something or be refused, without touching memory that is not its own (the sanitizers look on).
TEST(ChunkCodec, HostileContentIsDecodedOrRefused) {
  std::mt19937 random(5);
  for (const RowGroup& group : {ordinary_group(50), ordinary_group(500), dictionary_group(300)}) {
    const std::string chunk = encode_chunk(group);
    const bool compressed = is_compressed(chunk);
    const std::string raw = unsealed(chunk);
    for (std::size_t i = 0; i < raw.size(); ++i) {
      std::string changed = raw;
      changed[i] = static_cast<char>(random());
      try {
        EXPECT_LE(decode_chunk(sealed(changed, compressed)).rows(), kMaxChunkRows);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kDamaged);
      }
    }
    for (std::size_t length = 0; length < raw.size(); ++length) {
      expect_damaged(sealed(std::string_view(raw).substr(0, length), compressed),
                     "content cut at " + std::to_string(length));
    }
    expect_damaged(sealed(raw + '\0', compressed), "content with a byte more");
  }
}

TEST(ChunkCodec, FalseCountsReserveNoMemory) {
  const std::string huge = "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F";  // 2^63 - 1
  expect_damaged(sealed(huge + '\1' + std::string(64, '\0')), "rows");
  expect_damaged(sealed('\1' + huge + std::string(64, '\0')), "columns");
  // Ten million rows of nothing, in as many columns: small when compressed, and refused before it is held.
  std::string wide("\x80\xAD\xE2\x04\x80\xAD\xE2\x04", 8);
  wide.append(40'000'000, '\0');
  expect_damaged(sealed(wide), "rows times columns");
  expect_damaged(sealed(std::string(kMaxChunkRawBytes + 1, '\0')), "more than a chunk holds");
}

TEST(ChunkCodec, MoreRowsThanAllowedAreRefused) {
  const std::string bytes = encode_chunk(ordinary_group(100));
  EXPECT_EQ(decode_chunk(bytes, 100).rows(), 100u);
  EXPECT_THROW((void)decode_chunk(bytes, 99), Error);
}

TEST(StatsCodec, StatisticsComeBackAndCoverTheRanges) {
  const RowGroupInfo info = describe(awkward_group());
  const std::string bytes = encode_stats(info);
  RowGroupInfo back = info;
  back.series.clear();
  decode_stats(bytes, back);
  ASSERT_EQ(back.series.size(), info.series.size());
  for (std::size_t i = 0; i < info.series.size(); ++i) {
    EXPECT_EQ(back.series[i].key, info.series[i].key);
    EXPECT_EQ(back.series[i].count, info.series[i].count);
    EXPECT_EQ(back.series[i].numbers, info.series[i].numbers);
    EXPECT_EQ(back.series[i].nan_count, info.series[i].nan_count);
    EXPECT_EQ(back.series[i].min, info.series[i].min);
    EXPECT_EQ(back.series[i].max, info.series[i].max);
    EXPECT_EQ(back.series[i].last_kind, info.series[i].last_kind);
    EXPECT_EQ(back.series[i].last, info.series[i].last);
  }
  RowGroupInfo other = info;
  other.min_step += 1;
  EXPECT_THROW(decode_stats(bytes, other), Error);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    EXPECT_THROW(decode_stats(flipped, back), Error) << i;
    EXPECT_THROW(decode_stats(bytes.substr(0, i), back), Error) << i;
  }
}

// As a program leaves them that calls torch.set_flush_denormal(), or rounds to somewhere else.
class OtherArithmetic {
 public:
  explicit OtherArithmetic(int rounding) {
    std::fegetenv(&before_);
    std::fesetround(rounding);
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | kDenormalsAreZero | kFlushToZero);
#endif
  }
  ~OtherArithmetic() { std::fesetenv(&before_); }
  OtherArithmetic(const OtherArithmetic&) = delete;
  OtherArithmetic& operator=(const OtherArithmetic&) = delete;

 private:
  [[maybe_unused]] static constexpr unsigned kDenormalsAreZero = 0x40;
  [[maybe_unused]] static constexpr unsigned kFlushToZero = 0x8000;
  std::fenv_t before_;
};

RowGroup group_of_doubles(std::span<const std::uint64_t> bits) {
  RowGroup group;
  group.columns.emplace_back(KeyId{0});
  for (const std::uint64_t word : bits) {
    group.sequence.push_back(group.sequence.size() + 1);
    group.step.push_back(0);
    group.time_ns.push_back(0);
    group.columns[0].push_back(ValueView::scalar(ValueKind::kFloat64, word));
  }
  return group;
}

TEST(ChunkCodec, ModeOfTheCallersArithmeticChangesNothing) {
  std::vector<std::uint64_t> decimals, denormals;
  for (int i = 1; i < 500; ++i) decimals.push_back(std::bit_cast<std::uint64_t>(i * 7919 % 1000 / 1000.0));
  for (std::uint32_t i = 1; i < 500; ++i) {
    const auto bits = i * 16'411u & 0x7FFFFFu;
    denormals.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(bits))));
  }
  for (const auto& words : {decimals, denormals}) {
    const RowGroup group = group_of_doubles(words);
    const std::string chunk = encode_chunk(group);
    for (const int rounding : {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}) {
      const OtherArithmetic other(rounding);
      EXPECT_EQ(encode_chunk(group), chunk) << rounding;
      EXPECT_TRUE(test::same_group(decode_chunk(chunk), group)) << rounding;
      EXPECT_EQ(std::fegetround(), rounding) << "it stays as the caller had it";
    }
  }
}

// The bits of every kind of float32, signalling NaNs included.
TEST(ChunkCodec, Float32sComeBackBitForBit) {
  std::vector<std::uint64_t> words;
  for (const std::uint64_t bits :
       {0x0ull, 0x8000000000000000ull, 0x36A0000000000000ull, 0xB6A0000000000000ull, 0x380FFFFFC0000000ull,
        0x3810000000000000ull, 0x47EFFFFFE0000000ull, 0x7FF0000000000000ull, 0xFFF0000000000000ull,
        0x7FF8000000000000ull, 0x7FF0000020000000ull, 0xFFFFFFFFE0000000ull, 0x3FF0000020000000ull}) {
    words.insert(words.end(), 20, bits);
  }
  const RowGroup group = group_of_doubles(words);
  EXPECT_TRUE(test::same_group(decode_chunk(encode_chunk(group)), group));
  for (const std::uint64_t other : {0x3690000000000000ull, 0x47F0000000000000ull, 0x0000000000000001ull,
                                    0x3800000000000001ull, 0x7FF0000000000001ull}) {
    words.push_back(other);
    const RowGroup no_float32 = group_of_doubles(words);
    EXPECT_TRUE(test::same_group(decode_chunk(encode_chunk(no_float32)), no_float32)) << std::hex << other;
    words.pop_back();
  }
}

TEST(ChunkCodec, ColumnsWithoutRowsAreBounded) {
  std::string content(1, '\0');
  append_varint(content, 0);
  append_varint(content, kMaxChunkValues + 1);
  content.append(kMaxChunkValues + 100, '\0');
  EXPECT_THROW((void)decode_chunk(seal_plain_envelope(content)), Error);
}

}  // namespace
}  // namespace ranklog
