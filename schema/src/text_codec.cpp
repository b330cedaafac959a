#include "text_codec.hpp"

#include <numeric>
#include <unordered_map>

#include "number_codec.hpp"

namespace ranklog {
namespace {

// On disk, frozen.
constexpr std::uint8_t kPlain = 0;
constexpr std::uint8_t kDictionary = 1;

void append_plain(std::string& out, std::span<const std::string_view> texts, Packing packing) {
  std::vector<std::uint64_t> lengths;
  std::string all;
  lengths.reserve(texts.size());
  for (const std::string_view text : texts) {
    lengths.push_back(text.size());
    all += text;
  }
  NumberChoice search;
  append_numbers(out, lengths, NumberKind::kInteger, packing, search);
  append_stream(out, all, packing);
}

void read_plain(ByteReader& in, std::size_t count, std::vector<std::string>& texts, std::uint64_t max_bytes) {
  std::vector<std::uint64_t> lengths(count);
  read_numbers(in, lengths, NumberKind::kInteger);
  std::uint64_t total = 0;
  for (const std::uint64_t length : lengths) {
    if (length > max_bytes - total) throw Error(ErrorCode::kDamaged, "its texts are longer than they can be");
    total += length;
  }
  std::string all(total, '\0');
  read_stream(in, all);
  texts.reserve(texts.size() + count);
  std::size_t position = 0;
  for (const std::uint64_t length : lengths) {
    texts.emplace_back(all, position, length);
    position += length;
  }
}

}  // namespace

void append_texts(std::string& out, std::span<const std::string_view> texts, Packing packing) {
  if (texts.empty()) return;
  std::unordered_map<std::string_view, std::uint64_t> index_of;
  std::vector<std::string_view> distinct;
  std::vector<std::uint64_t> indices;
  for (const std::string_view text : texts) {
    const auto [entry, is_new] = index_of.try_emplace(text, distinct.size());
    if (is_new) distinct.push_back(text);
    indices.push_back(entry->second);
  }
  if (distinct.size() > texts.size() / 2) {
    append_fixed(out, kPlain);
    append_plain(out, texts, packing);
    return;
  }
  append_fixed(out, kDictionary);
  append_varint(out, distinct.size());
  append_plain(out, distinct, packing);
  NumberChoice search;
  append_numbers(out, indices, NumberKind::kInteger, packing, search);
}

void read_texts(ByteReader& in, std::span<std::uint64_t> indices, std::vector<std::string>& texts,
                std::uint64_t max_bytes) {
  if (indices.empty()) return;
  const std::uint64_t before = texts.size();
  switch (in.fixed<std::uint8_t>()) {
    case kPlain:
      read_plain(in, indices.size(), texts, max_bytes);
      std::iota(indices.begin(), indices.end(), before);
      return;
    case kDictionary: {
      const std::uint64_t distinct = in.varint();
      if (distinct > indices.size()) throw Error(ErrorCode::kDamaged, "more distinct texts than texts");
      read_plain(in, distinct, texts, max_bytes);
      read_numbers(in, indices, NumberKind::kInteger);
      for (std::uint64_t& index : indices) {
        if (index >= distinct) throw Error(ErrorCode::kDamaged, "an index beyond its dictionary");
        index += before;
      }
      return;
    }
    default:
      throw Error(ErrorCode::kDamaged, "unknown encoding of texts");
  }
}

}  // namespace ranklog
