#pragma once
// Compressed bytes under a checksum (FORMAT.md, "Envelope").

#include <cstdint>
#include <string>
#include <string_view>

namespace ranklog {

// CRC-32 as in zlib, gzip and PNG.
[[nodiscard]] std::uint32_t crc32_of(std::string_view bytes) noexcept;

[[nodiscard]] std::string seal_envelope(std::string_view content);
// Of content that is compressed already.
[[nodiscard]] std::string seal_plain_envelope(std::string_view content);

// Throws Error (kDamaged); allocates at most `max_content` bytes, and never much more than a zstd frame of
// this size can hold.
[[nodiscard]] std::string open_envelope(std::string_view bytes, std::uint64_t max_content);

}  // namespace ranklog
