#pragma once
// CRC-32C (Castagnoli; RFC 3720, appendix B.4): by the processor's instruction where there is one.

#include <cstdint>
#include <string_view>

namespace ranklog {

[[nodiscard]] std::uint32_t crc32c_of(std::string_view bytes) noexcept;

// The same without the instruction, for machines that lack it and for the test that both agree.
[[nodiscard]] std::uint32_t crc32c_by_table(std::string_view bytes) noexcept;

}  // namespace ranklog
