#pragma once
// Single zstd frames, with one context a thread used again: making one costs more than compressing a chunk.

#include <cstdint>
#include <string>
#include <string_view>

namespace ranklog {

// Appends one frame, which states its content size.
void append_zstd_frame(std::string& out, std::string_view content, int level);

// The content size that a frame states, if `frame` is exactly one frame and can hold so much; else throws
// Error (kDamaged). At most `max_content`.
[[nodiscard]] std::uint64_t zstd_content_size(std::string_view frame, std::uint64_t max_content);

// Fills `size` bytes, which must be what zstd_content_size() said. Throws Error (kDamaged).
void decompress_zstd_frame(std::string_view frame, char* out, std::size_t size);

}  // namespace ranklog
