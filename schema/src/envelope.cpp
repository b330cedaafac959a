#include "envelope.hpp"

#include <zlib.h>

#include "bytes.hpp"
#include "zstd_frame.hpp"

namespace ranklog {
namespace {

// On disk, frozen: how the content is stored.
constexpr std::uint8_t kZstd = 0;
constexpr std::uint8_t kPlain = 1;
constexpr int kLevel = 3;
constexpr std::size_t kChecksumBytes = 4;

void put_checksum(std::string& envelope) {
  const std::uint32_t checksum = crc32_of(std::string_view(envelope).substr(kChecksumBytes));
  std::memcpy(envelope.data(), &checksum, sizeof(checksum));
}

}  // namespace

std::uint32_t crc32_of(std::string_view bytes) noexcept {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::string seal_envelope(std::string_view content) {
  std::string out(kChecksumBytes, '\0');
  append_fixed(out, kZstd);
  append_zstd_frame(out, content, kLevel);
  put_checksum(out);
  return out;
}

std::string seal_plain_envelope(std::string_view content) {
  std::string out(kChecksumBytes, '\0');
  append_fixed(out, kPlain);
  out += content;
  put_checksum(out);
  return out;
}

std::string open_envelope(std::string_view bytes, std::uint64_t max_content) {
  ByteReader reader(bytes);
  const auto checksum = reader.fixed<std::uint32_t>();
  if (crc32_of(bytes.substr(kChecksumBytes)) != checksum) {
    throw Error(ErrorCode::kDamaged, "checksum mismatch");
  }
  const auto mode = reader.fixed<std::uint8_t>();
  const std::string_view frame = reader.take(reader.remaining());
  if (mode == kPlain) return std::string(frame);
  if (mode != kZstd) throw Error(ErrorCode::kDamaged, "unknown compression");
  std::string content(zstd_content_size(frame, max_content), '\0');
  decompress_zstd_frame(frame, content.data(), content.size());
  return content;
}

}  // namespace ranklog
