#include "zstd_frame.hpp"

#include <zstd.h>

#include <memory>
#include <new>

#include "ranklog/schema/error.hpp"

namespace ranklog {
namespace {

// 128 KiB of equal bytes take a block of 4; nothing in zstd is denser.
constexpr std::uint64_t kMaxRatio = std::uint64_t{1} << 16;

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

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

void append_zstd_frame(std::string& out, std::string_view content, int level) {
  const std::size_t start = out.size();
  out.resize(start + ZSTD_compressBound(content.size()));
  const std::size_t size = ZSTD_compressCCtx(compressor(), out.data() + start, out.size() - start,
                                             content.data(), content.size(), level);
  if (ZSTD_isError(size)) {
    throw Error(ErrorCode::kIo, std::string("zstd cannot compress: ") + ZSTD_getErrorName(size));
  }
  out.resize(start + size);
}

std::uint64_t zstd_content_size(std::string_view frame, std::uint64_t max_content) {
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    throw Error(ErrorCode::kDamaged, "not one whole zstd frame");
  }
  // Unknown and error are the two greatest numbers, and fall to the first limit.
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size > max_content || size > frame.size() * kMaxRatio) {
    throw Error(ErrorCode::kDamaged, "it claims to hold more than it can");
  }
  return size;
}

void decompress_zstd_frame(std::string_view frame, char* out, std::size_t size) {
  const std::size_t got = ZSTD_decompressDCtx(decompressor(), out, size, frame.data(), frame.size());
  if (ZSTD_isError(got) || got != size) throw Error(ErrorCode::kDamaged, "zstd cannot decompress it");
}

}  // namespace ranklog
