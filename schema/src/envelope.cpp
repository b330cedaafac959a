#include "envelope.hpp"

#include <zlib.h>
#include <zstd.h>

#include <memory>

#include "bytes.hpp"

namespace ranklog {
namespace {

constexpr std::uint8_t kZstd = 0;  // on disk, frozen: how the content is compressed
constexpr int kLevel = 3;
// 128 KiB of equal bytes take a block of 4; nothing in zstd is denser.
constexpr std::uint64_t kMaxRatio = std::uint64_t{1} << 16;
constexpr std::size_t kChecksumBytes = 4;

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

// One context a thread, used again: making one costs more than compressing a small chunk.
ZSTD_CCtx* compressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  return context.get();
}
ZSTD_DCtx* decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  if (!context) throw std::bad_alloc();
  return context.get();
}

}  // namespace

std::uint32_t crc32_of(std::string_view bytes) noexcept {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::string seal_envelope(std::string_view content) {
  constexpr std::size_t kHeader = kChecksumBytes + 1;
  std::string out(kHeader + ZSTD_compressBound(content.size()), '\0');
  out[kChecksumBytes] = static_cast<char>(kZstd);
  const std::size_t compressed = ZSTD_compressCCtx(compressor(), out.data() + kHeader, out.size() - kHeader,
                                                   content.data(), content.size(), kLevel);
  if (ZSTD_isError(compressed)) {
    throw Error(ErrorCode::kIo, std::string("zstd cannot compress: ") + ZSTD_getErrorName(compressed));
  }
  out.resize(kHeader + compressed);
  const std::uint32_t checksum = crc32_of(std::string_view(out).substr(kChecksumBytes));
  std::memcpy(out.data(), &checksum, sizeof(checksum));
  return out;
}

std::string open_envelope(std::string_view bytes, std::uint64_t max_content) {
  ByteReader reader(bytes);
  const auto checksum = reader.fixed<std::uint32_t>();
  if (crc32_of(bytes.substr(kChecksumBytes)) != checksum) {
    throw Error(ErrorCode::kDamaged, "checksum mismatch");
  }
  if (reader.fixed<std::uint8_t>() != kZstd) throw Error(ErrorCode::kDamaged, "unknown compression");
  const std::string_view frame = reader.take(reader.remaining());
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    throw Error(ErrorCode::kDamaged, "not one whole zstd frame");
  }
  // Unknown and error are the two greatest numbers, and fall to the first limit.
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size > max_content || size > frame.size() * kMaxRatio) {
    throw Error(ErrorCode::kDamaged, "it claims to hold more than it can");
  }
  std::string content(size, '\0');
  const std::size_t got =
      ZSTD_decompressDCtx(decompressor(), content.data(), content.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) || got != size) throw Error(ErrorCode::kDamaged, "zstd cannot decompress it");
  return content;
}

}  // namespace ranklog
