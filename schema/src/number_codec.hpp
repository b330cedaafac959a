#pragma once
// A column of 64-bit numbers as byte planes (FORMAT.md, "Numbers"): of several ways to write them the one
// that takes the fewest bytes is kept.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "stream_codec.hpp"

namespace ranklog {

enum class NumberKind : std::uint8_t {
  kInteger,  // two's complement, or unsigned modulo 2^64
  kFloat64,  // the bits of IEEE 754 binary64
};

// How a column was written. An encoder that is given the choice made for the same series before does not
// search again while it still fits.
struct NumberChoice {
  std::uint8_t code = 0;       // view and prediction, as on disk
  std::uint8_t parameter = 0;  // decimals or bits, of the views that have one
  bool known = false;
};

// `choice`, if known, is used where it is possible; what was used is left in it.
void append_numbers(std::string& out, std::span<const std::uint64_t> words, NumberKind kind, Packing packing,
                    NumberChoice& choice);

// Fills all of `words`. Throws Error (kDamaged).
void read_numbers(ByteReader& in, std::span<std::uint64_t> words, NumberKind kind);

}  // namespace ranklog
