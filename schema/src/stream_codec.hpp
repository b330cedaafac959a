#pragma once
// Byte streams inside a chunk (FORMAT.md, "Streams"). Whoever reads a stream knows its length already.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "bytes.hpp"

namespace ranklog {

// Whether streams are compressed one by one, or left as they are because the whole chunk will be.
enum class Packing : std::uint8_t { kSeparate, kSolid };

void append_stream(std::string& out, std::string_view bytes, Packing packing);

// Throws Error (kDamaged). Fills all of `bytes`.
void read_stream(ByteReader& in, std::span<char> bytes);

}  // namespace ranklog
