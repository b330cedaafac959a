#include "stream_codec.hpp"

#include <algorithm>

#include "zstd_frame.hpp"

namespace ranklog {
namespace {

// On disk, frozen.
constexpr std::uint8_t kRaw = 0;
constexpr std::uint8_t kConstant = 1;
constexpr std::uint8_t kZstd = 2;

constexpr int kLevel = 1;  // higher ones gain nothing on byte planes (FORMAT.md, "Why these choices")
// A frame takes at least 12 bytes more than its content's entropy.
constexpr std::size_t kLeastToCompress = 24;

}  // namespace

void append_stream(std::string& out, std::string_view bytes, Packing packing) {
  if (bytes.empty()) return;
  if (bytes.find_first_not_of(bytes.front()) == std::string_view::npos) {
    append_fixed(out, kConstant);
    out += bytes.front();
    return;
  }
  const std::size_t start = out.size();
  if (packing == Packing::kSeparate && bytes.size() >= kLeastToCompress) {
    thread_local std::string frame;
    frame.clear();
    append_zstd_frame(frame, bytes, kLevel);
    append_fixed(out, kZstd);
    append_varint(out, frame.size());
    if (out.size() - start + frame.size() <= bytes.size()) {
      out += frame;
      return;
    }
    out.resize(start);
  }
  append_fixed(out, kRaw);
  out += bytes;
}

void read_stream(ByteReader& in, std::span<char> bytes) {
  if (bytes.empty()) return;
  switch (in.fixed<std::uint8_t>()) {
    case kRaw:
      std::ranges::copy(in.take(bytes.size()), bytes.begin());
      return;
    case kConstant:
      std::ranges::fill(bytes, in.fixed<char>());
      return;
    case kZstd: {
      const std::string_view frame = in.take(in.varint());
      if (zstd_content_size(frame, bytes.size()) != bytes.size()) {
        throw Error(ErrorCode::kDamaged, "a stream has another length than its column");
      }
      decompress_zstd_frame(frame, bytes.data(), bytes.size());
      return;
    }
    default:
      throw Error(ErrorCode::kDamaged, "unknown stream mode");
  }
}

}  // namespace ranklog
