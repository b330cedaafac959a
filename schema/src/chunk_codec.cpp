#include "ranklog/schema/chunk_codec.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "bytes.hpp"
#include "envelope.hpp"

namespace ranklog {
namespace {

constexpr std::uint8_t kMixed = 0xFF;  // on disk, frozen: instead of the one kind of a column
constexpr std::size_t kKinds = 6;
constexpr std::size_t kDoubleBytes = 8;

using KindCounts = std::array<std::size_t, kKinds>;

[[noreturn]] void damaged(const char* what) {
  throw Error(ErrorCode::kDamaged, what);
}

// --- Integers: zigzag varints of the differences of differences, all modulo 2^64.

class IntegerEncoder {
 public:
  void append(std::string& out, std::uint64_t value) {
    const std::uint64_t delta = value - last_;
    append_varint(out, zigzag(delta - last_delta_));
    last_ = value;
    last_delta_ = delta;
  }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t last_delta_ = 0;
};

class IntegerDecoder {
 public:
  std::uint64_t next(ByteReader& in) {
    last_delta_ += unzigzag(in.varint());
    last_ += last_delta_;
    return last_;
  }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t last_delta_ = 0;
};

template <class T>
void encode_integers(std::string& out, const std::vector<T>& values) {
  IntegerEncoder encoder;
  for (const T value : values) encoder.append(out, static_cast<std::uint64_t>(value));
}

template <class T>
std::vector<T> decode_integers(ByteReader& in, std::size_t count) {
  std::vector<T> values(count);
  IntegerDecoder decoder;
  for (T& value : values) value = static_cast<T>(decoder.next(in));
  return values;
}

// --- One kind of a column. `bits` and the texts are those of this kind alone, in row order.

void encode_doubles(std::string& out, std::span<const std::uint64_t> bits) {
  const std::size_t start = out.size();
  out.resize(start + kDoubleBytes * bits.size());
  char* plane = out.data() + start;
  for (unsigned shift = 0; shift < 64; shift += 8, plane += bits.size()) {
    for (std::size_t i = 0; i < bits.size(); ++i) plane[i] = static_cast<char>(bits[i] >> shift);
  }
}

void decode_doubles(ByteReader& in, std::span<std::uint64_t> bits) {
  const std::size_t count = bits.size();
  const auto* plane = reinterpret_cast<const unsigned char*>(in.take(kDoubleBytes * count).data());
  // All planes at once: a pass a plane would read and write the result eight times.
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t value = 0;
    for (unsigned byte = 0; byte < kDoubleBytes; ++byte) {
      value |= static_cast<std::uint64_t>(plane[byte * count + i]) << (8 * byte);
    }
    bits[i] = value;
  }
}

void encode_bools(std::string& out, std::span<const std::uint64_t> bits) {
  const std::size_t start = out.size();
  out.resize(start + (bits.size() + 7) / 8);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] != 0) out[start + i / 8] = static_cast<char>(out[start + i / 8] | 1 << i % 8);
  }
}

void decode_bools(ByteReader& in, std::span<std::uint64_t> bits) {
  const std::string_view bytes = in.take((bits.size() + 7) / 8);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<unsigned char>(bytes[i / 8]) >> i % 8 & 1;
  }
}

void encode_texts(std::string& out, std::span<const std::uint64_t> bits, std::span<const std::string> texts) {
  for (const std::uint64_t index : bits) append_varint(out, texts[index].size());
  for (const std::uint64_t index : bits) out += texts[index];
}

void decode_texts(ByteReader& in, std::span<std::uint64_t> bits, std::vector<std::string>& texts) {
  // A length takes at least a byte, so a false count cannot reserve more than the input's size.
  if (bits.size() > in.remaining()) damaged("the data end too early");
  std::vector<std::uint64_t> lengths(bits.size());
  for (std::uint64_t& length : lengths) length = in.varint();
  texts.reserve(texts.size() + lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    bits[i] = texts.size();
    texts.emplace_back(in.take(lengths[i]));
  }
}

void encode_kind(std::string& out, ValueKind kind, std::span<const std::uint64_t> bits,
                 const Column& column) {
  switch (kind) {
    case ValueKind::kNull:
      return;
    case ValueKind::kFloat64:
      return encode_doubles(out, bits);
    case ValueKind::kInt64: {
      IntegerEncoder encoder;
      for (const std::uint64_t value : bits) encoder.append(out, value);
      return;
    }
    case ValueKind::kBool:
      return encode_bools(out, bits);
    case ValueKind::kString:
    case ValueKind::kJson:
      return encode_texts(out, bits, column.texts());
  }
}

// `bits` arrive as zeros.
void decode_kind(ByteReader& in, ValueKind kind, std::span<std::uint64_t> bits,
                 std::vector<std::string>& texts) {
  switch (kind) {
    case ValueKind::kNull:
      return;
    case ValueKind::kFloat64:
      return decode_doubles(in, bits);
    case ValueKind::kInt64: {
      IntegerDecoder decoder;
      for (std::uint64_t& value : bits) value = decoder.next(in);
      return;
    }
    case ValueKind::kBool:
      return decode_bools(in, bits);
    case ValueKind::kString:
    case ValueKind::kJson:
      return decode_texts(in, bits, texts);
  }
}

// --- Columns

KindCounts count_kinds(std::span<const std::uint8_t> kinds) {
  KindCounts counts{};
  for (const std::uint8_t kind : kinds) {
    if (kind >= kKinds) damaged("unknown value kind");
    ++counts[kind];
  }
  return counts;
}

void encode_column(std::string& out, const Column& column) {
  append_varint(out, column.key());
  const std::span<const std::uint8_t> kinds = column.kinds();
  const KindCounts counts = count_kinds(kinds);
  const auto uniform = std::ranges::find(counts, kinds.size());
  if (uniform != counts.end()) {
    const auto kind = static_cast<std::uint8_t>(uniform - counts.begin());
    append_fixed(out, kind);
    encode_kind(out, static_cast<ValueKind>(kind), column.bits(), column);
    return;
  }
  append_fixed(out, kMixed);
  out.append(reinterpret_cast<const char*>(kinds.data()), kinds.size());
  std::vector<std::uint64_t> bits;
  for (std::uint8_t kind = 0; kind < kKinds; ++kind) {
    bits.clear();
    for (std::size_t row = 0; row < kinds.size(); ++row) {
      if (kinds[row] == kind) bits.push_back(column.bits()[row]);
    }
    encode_kind(out, static_cast<ValueKind>(kind), bits, column);
  }
}

Column decode_mixed_column(ByteReader& in, KeyId key, std::size_t rows) {
  const std::string_view tags = in.take(rows);
  std::vector<std::uint8_t> kinds(tags.begin(), tags.end());
  const KindCounts counts = count_kinds(kinds);
  std::vector<std::uint64_t> bits(rows);
  std::vector<std::string> texts;
  for (std::uint8_t kind = 0; kind < kKinds; ++kind) {
    std::vector<std::uint64_t> of_kind(counts[kind]);
    decode_kind(in, static_cast<ValueKind>(kind), of_kind, texts);
    for (std::size_t row = 0, i = 0; i < of_kind.size(); ++row) {
      if (kinds[row] == kind) bits[row] = of_kind[i++];
    }
  }
  return Column(key, std::move(kinds), std::move(bits), std::move(texts));
}

Column decode_column(ByteReader& in, std::size_t rows) {
  const std::uint64_t key = in.varint();
  if (key > std::numeric_limits<KeyId>::max()) damaged("unknown key");
  const auto tag = in.fixed<std::uint8_t>();
  if (tag == kMixed) return decode_mixed_column(in, static_cast<KeyId>(key), rows);
  if (tag >= kKinds) damaged("unknown value kind");
  std::vector<std::uint64_t> bits(rows);
  std::vector<std::string> texts;
  decode_kind(in, static_cast<ValueKind>(tag), bits, texts);
  return Column(static_cast<KeyId>(key), std::vector<std::uint8_t>(rows, tag), std::move(bits),
                std::move(texts));
}

}  // namespace

std::string encode_chunk(const RowGroup& group) {
  std::string raw;
  append_varint(raw, group.rows());
  append_varint(raw, group.columns.size());
  encode_integers(raw, group.sequence);
  encode_integers(raw, group.step);
  encode_integers(raw, group.time_ns);
  for (const Column& column : group.columns) encode_column(raw, column);
  if (raw.size() > kMaxChunkRawBytes || group.rows() * group.columns.size() > kMaxChunkValues) {
    throw Error(ErrorCode::kUsage, "a group of " + std::to_string(group.rows()) + " rows and " +
                                       std::to_string(raw.size()) + " bytes is more than a chunk can hold");
  }
  return seal_envelope(raw);
}

RowGroup decode_chunk(std::string_view bytes, std::uint64_t max_rows) {
  const std::string raw = open_envelope(bytes, kMaxChunkRawBytes);
  ByteReader in(raw);
  const std::uint64_t rows = in.varint();
  const std::uint64_t columns = in.varint();
  // Every row takes at least three bytes and every column two, so false counts cannot reserve much memory.
  if (rows > max_rows || rows > in.remaining() / 3) damaged("it claims more rows than it can hold");
  if (columns > in.remaining() / 2 || (columns != 0 && rows > kMaxChunkValues / columns)) {
    damaged("it claims more values than it can hold");
  }
  RowGroup group;
  group.sequence = decode_integers<std::uint64_t>(in, rows);
  group.step = decode_integers<std::int64_t>(in, rows);
  group.time_ns = decode_integers<std::int64_t>(in, rows);
  group.columns.reserve(columns);
  for (std::uint64_t i = 0; i < columns; ++i) group.columns.push_back(decode_column(in, rows));
  in.expect_end();
  return group;
}

}  // namespace ranklog
