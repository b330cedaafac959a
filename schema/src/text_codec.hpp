#pragma once
// A column of texts (FORMAT.md, "Texts"): as they come, or as indices of the distinct ones.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bytes.hpp"
#include "stream_codec.hpp"

namespace ranklog {

void append_texts(std::string& out, std::span<const std::string_view> texts, Packing packing);

// Appends the distinct texts to `texts`, and fills `indices` with where each row's text then is. No more than
// `max_bytes` of text. Throws Error (kDamaged).
void read_texts(ByteReader& in, std::span<std::uint64_t> indices, std::vector<std::string>& texts,
                std::uint64_t max_bytes);

}  // namespace ranklog
