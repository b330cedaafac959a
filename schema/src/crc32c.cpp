#include "crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace ranklog {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // bits reversed
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::string_view bytes) noexcept {
  std::uint64_t crc = 0xFFFFFFFF;
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    crc = _mm_crc32_u64(crc, word);
    bytes.remove_prefix(sizeof(word));
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (const char byte : bytes) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(byte));
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::string_view bytes) noexcept {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::uint32_t crc32c_of(std::string_view bytes) noexcept {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_by_instruction(bytes);
#endif
  return crc32c_by_table(bytes);
}

}  // namespace ranklog
