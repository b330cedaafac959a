#pragma once
// Little-endian numbers and varints in byte strings, and a reader that never leaves its bytes.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "ranklog/schema/error.hpp"

namespace ranklog {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian, read by memcpy");

// T: an unsigned or signed integer, or double.
template <class T>
void append_fixed(std::string& out, T value) {
  static_assert(std::is_arithmetic_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

// LEB128: seven bits a byte, lowest first, the high bit set on all but the last.
inline void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

// Small magnitudes of either sign become small numbers: 0, -1, 1, -2 ... -> 0, 1, 2, 3 ...
[[nodiscard]] constexpr std::uint64_t zigzag(std::uint64_t value) noexcept {
  return value << 1 ^ (value >> 63 ? ~std::uint64_t{0} : 0);
}
[[nodiscard]] constexpr std::uint64_t unzigzag(std::uint64_t value) noexcept {
  return value >> 1 ^ (value & 1 ? ~std::uint64_t{0} : 0);
}

// Throws Error (kDamaged) where the bytes end too early.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] std::size_t remaining() const noexcept { return bytes_.size(); }

  template <class T>
  [[nodiscard]] T fixed() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    const std::string_view bytes = take(sizeof(T));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        if (shift == 63 && byte > 1) break;
        return value;
      }
    }
    throw Error(ErrorCode::kDamaged, "a number has too many bytes");
  }

  [[nodiscard]] std::string_view take(std::uint64_t count) {
    if (count > bytes_.size()) throw Error(ErrorCode::kDamaged, "the data end too early");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  void expect_end() const {
    if (!bytes_.empty()) throw Error(ErrorCode::kDamaged, "bytes follow where the data should end");
  }

 private:
  std::string_view bytes_;
};

}  // namespace ranklog
