#include "ranklog/schema/chunk_codec.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "bytes.hpp"
#include "envelope.hpp"
#include "number_codec.hpp"
#include "text_codec.hpp"

namespace ranklog {
namespace {

constexpr std::uint8_t kMixed = 0xFF;  // on disk, frozen: instead of the one kind of a column
constexpr std::size_t kKinds = 6;

using KindCounts = std::array<std::size_t, kKinds>;

[[noreturn]] void damaged(const char* what) {
  throw Error(ErrorCode::kDamaged, what);
}

KindCounts count_kinds(std::span<const std::uint8_t> kinds) {
  KindCounts counts{};
  for (const std::uint8_t kind : kinds) {
    if (kind >= kKinds) damaged("unknown value kind");
    ++counts[kind];
  }
  return counts;
}

std::string pack_bits(std::span<const std::uint64_t> bools) {
  std::string bytes((bools.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < bools.size(); ++i) {
    if (bools[i] != 0) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 1 << i % 8);
  }
  return bytes;
}

void read_bits(ByteReader& in, std::span<std::uint64_t> bools) {
  std::string bytes((bools.size() + 7) / 8, '\0');
  read_stream(in, bytes);
  for (std::size_t i = 0; i < bools.size(); ++i) {
    bools[i] = static_cast<unsigned char>(bytes[i / 8]) >> i % 8 & 1;
  }
}

}  // namespace

// One group, in one packing.
class GroupEncoder {
 public:
  GroupEncoder(const RowGroup& group, Packing packing, ChunkEncoder& memory)
      : group_(group), packing_(packing), memory_(memory) {}

  std::string encode() {
    append_fixed(head_, static_cast<std::uint8_t>(group_.stream));
    append_varint(head_, group_.rows());
    append_varint(head_, group_.columns.size());
    const std::uint64_t set = group_.columns.empty() ? 0 : group_.columns.front().key();
    add_index(group_.sequence, set, kKinds);
    add_index(group_.step, set, kKinds + 1);
    add_index(group_.time_ns, set, kKinds + 2);
    for (const Column& column : group_.columns) {
      append_varint(head_, column.key());
      add_column(column);
      end_column();
    }
    return head_ + body_;
  }

 private:
  // Sequence, step or time.
  template <class T>
  void add_index(const std::vector<T>& numbers, std::uint64_t set, std::size_t which) {
    const std::vector<std::uint64_t> words(numbers.begin(), numbers.end());
    add_numbers(words, NumberKind::kInteger, set << 4 | which);
    end_column();
  }

  void end_column() {
    append_varint(head_, body_.size() - column_start_);
    column_start_ = body_.size();
  }

  void add_column(const Column& column) {
    const std::span<const std::uint8_t> kinds = column.kinds();
    const KindCounts counts = count_kinds(kinds);
    const auto uniform = std::ranges::find(counts, kinds.size());
    if (uniform != counts.end()) {
      const auto kind = static_cast<std::uint8_t>(uniform - counts.begin());
      append_fixed(body_, kind);
      add_kind(column, static_cast<ValueKind>(kind), column.bits());
      return;
    }
    append_fixed(body_, kMixed);
    append_stream(body_, std::string_view(reinterpret_cast<const char*>(kinds.data()), kinds.size()),
                  packing_);
    std::vector<std::uint64_t> bits;
    for (std::uint8_t kind = 0; kind < kKinds; ++kind) {
      bits.clear();
      for (std::size_t row = 0; row < kinds.size(); ++row) {
        if (kinds[row] == kind) bits.push_back(column.bits()[row]);
      }
      add_kind(column, static_cast<ValueKind>(kind), bits);
    }
  }

  // The values of one kind: `bits` are theirs alone, in row order.
  void add_kind(const Column& column, ValueKind kind, std::span<const std::uint64_t> bits) {
    const std::uint64_t series = std::uint64_t{column.key()} << 4 | static_cast<std::uint64_t>(kind);
    switch (kind) {
      case ValueKind::kNull:
        return;
      case ValueKind::kFloat64:
        return add_numbers(bits, NumberKind::kFloat64, series);
      case ValueKind::kInt64:
        return add_numbers(bits, NumberKind::kInteger, series);
      case ValueKind::kBool:
        return append_stream(body_, pack_bits(bits), packing_);
      case ValueKind::kString:
      case ValueKind::kJson: {
        std::vector<std::string_view> texts;
        texts.reserve(bits.size());
        for (const std::uint64_t index : bits) texts.emplace_back(column.texts()[index]);
        return append_texts(body_, texts, packing_);
      }
    }
  }

  void add_numbers(std::span<const std::uint64_t> words, NumberKind kind, std::uint64_t series) {
    NumberChoice choice;
    if (packing_ == Packing::kSeparate) {
      const auto known = memory_.choices_.find(series);
      if (known != memory_.choices_.end()) choice = {known->second.code, known->second.parameter, true};
    }
    append_numbers(body_, words, kind, packing_, choice);
    if (packing_ == Packing::kSeparate) memory_.choices_[series] = {choice.code, choice.parameter};
  }

  const RowGroup& group_;
  Packing packing_;
  ChunkEncoder& memory_;
  std::string head_, body_;
  std::size_t column_start_ = 0;
};

EncodedChunk encode(const RowGroup& group, ChunkEncoder& encoder) {
  EncodedChunk chunk;
  chunk.info = describe(group);
  chunk.stats = encode_stats(chunk.info);
  chunk.data = encoder.encode(group);
  return chunk;
}

std::string ChunkEncoder::encode(const RowGroup& group) {
  constexpr unsigned kChunksBetweenSearches = 32;
  constexpr std::size_t kSmall = 8192;  // bytes: above it, one frame for all planes was never shorter
  if (chunks_until_search_-- == 0) {
    choices_.clear();
    chunks_until_search_ = kChunksBetweenSearches - 1;
  }
  std::string separate = GroupEncoder(group, Packing::kSeparate, *this).encode();
  if (separate.size() > kMaxChunkRawBytes || group.rows() > kMaxChunkRows ||
      group.rows() * group.columns.size() > kMaxChunkValues) {
    throw Error(ErrorCode::kUsage, "a group of " + std::to_string(group.rows()) + " rows and " +
                                       std::to_string(separate.size()) +
                                       " bytes is more than a chunk can hold");
  }
  std::string chunk = seal_plain_envelope(separate);
  if (separate.size() <= kSmall) {
    std::string solid = seal_envelope(GroupEncoder(group, Packing::kSolid, *this).encode());
    if (solid.size() < chunk.size()) return solid;
  }
  return chunk;
}

// --- Decoding

namespace {

class GroupDecoder {
 public:
  GroupDecoder(std::string_view raw, std::uint64_t max_rows) : in_(raw) {
    stream_ = static_cast<Stream>(in_.fixed<std::uint8_t>());
    rows_ = in_.varint();
    columns_ = in_.varint();
    if (rows_ > std::min(max_rows, kMaxChunkRows)) damaged("it claims more rows than it can hold");
    if (columns_ > in_.remaining() || columns_ > kMaxChunkValues / std::max<std::uint64_t>(rows_, 1)) {
      damaged("it claims more values than it can hold");
    }
    for (std::uint64_t& length : index_lengths_) length = in_.varint();
    heads_.reserve(columns_);
    for (std::uint64_t i = 0; i < columns_; ++i) {
      const std::uint64_t key = in_.varint();
      if (key > std::numeric_limits<KeyId>::max()) damaged("unknown key");
      heads_.push_back({static_cast<KeyId>(key), in_.varint()});
    }
  }

  // With `wanted`, which asks for a key: only those columns.
  template <class Wanted>
  RowGroup decode(Wanted wanted) {
    RowGroup group;
    group.stream = stream_;
    group.sequence = read_index<std::uint64_t>(index_lengths_[0]);
    group.step = read_index<std::int64_t>(index_lengths_[1]);
    group.time_ns = read_index<std::int64_t>(index_lengths_[2]);
    for (const Head& head : heads_) {
      const std::string_view column = in_.take(head.length);
      if (wanted(head.key)) group.columns.push_back(read_column(head.key, column));
    }
    in_.expect_end();
    return group;
  }

 private:
  struct Head {
    KeyId key;
    std::uint64_t length;
  };

  template <class T>
  std::vector<T> read_index(std::uint64_t length) {
    ByteReader in(in_.take(length));
    std::vector<std::uint64_t> words(rows_);
    read_numbers(in, words, NumberKind::kInteger);
    in.expect_end();
    return std::vector<T>(words.begin(), words.end());
  }

  Column read_column(KeyId key, std::string_view bytes) {
    ByteReader in(bytes);
    const auto tag = in.fixed<std::uint8_t>();
    std::vector<std::uint8_t> kinds(rows_, tag);
    std::vector<std::uint64_t> bits(rows_);
    std::vector<std::string> texts;
    if (tag == kMixed) {
      read_mixed(in, kinds, bits, texts);
    } else if (tag < kKinds) {
      read_kind(in, static_cast<ValueKind>(tag), bits, texts);
    } else {
      damaged("unknown value kind");
    }
    in.expect_end();
    return Column(key, std::move(kinds), std::move(bits), std::move(texts));
  }

  void read_mixed(ByteReader& in, std::vector<std::uint8_t>& kinds, std::vector<std::uint64_t>& bits,
                  std::vector<std::string>& texts) {
    read_stream(in, std::span(reinterpret_cast<char*>(kinds.data()), kinds.size()));
    const KindCounts counts = count_kinds(kinds);
    for (std::uint8_t kind = 0; kind < kKinds; ++kind) {
      std::vector<std::uint64_t> of_kind(counts[kind]);
      read_kind(in, static_cast<ValueKind>(kind), of_kind, texts);
      for (std::size_t row = 0, i = 0; i < of_kind.size(); ++row) {
        if (kinds[row] == kind) bits[row] = of_kind[i++];
      }
    }
  }

  // `bits` arrive as zeros.
  void read_kind(ByteReader& in, ValueKind kind, std::span<std::uint64_t> bits,
                 std::vector<std::string>& texts) {
    switch (kind) {
      case ValueKind::kNull:
        return;
      case ValueKind::kFloat64:
        return read_numbers(in, bits, NumberKind::kFloat64);
      case ValueKind::kInt64:
        return read_numbers(in, bits, NumberKind::kInteger);
      case ValueKind::kBool:
        return read_bits(in, bits);
      case ValueKind::kString:
      case ValueKind::kJson: {
        const std::size_t before = texts.size();
        read_texts(in, bits, texts, text_budget_);
        for (std::size_t i = before; i < texts.size(); ++i) text_budget_ -= texts[i].size();
        return;
      }
    }
  }

  ByteReader in_;
  Stream stream_;
  std::uint64_t rows_ = 0, columns_ = 0;
  std::array<std::uint64_t, 3> index_lengths_{};  // sequence, step, time
  std::vector<Head> heads_;
  std::uint64_t text_budget_ = kMaxChunkRawBytes;
};

}  // namespace

RowGroup decode_chunk(std::string_view bytes, std::uint64_t max_rows) {
  const std::string raw = open_envelope(bytes, kMaxChunkRawBytes);
  return GroupDecoder(raw, max_rows).decode([](KeyId) { return true; });
}

RowGroup decode_chunk(std::string_view bytes, std::span<const KeyId> keys, std::uint64_t max_rows) {
  const std::string raw = open_envelope(bytes, kMaxChunkRawBytes);
  return GroupDecoder(raw, max_rows).decode([&](KeyId key) { return std::ranges::binary_search(keys, key); });
}

}  // namespace ranklog
