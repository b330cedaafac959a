#pragma once
// The little of UTF-8 that a JSON or GraphQL reader needs.

#include <string>

namespace ranklog::standin {

// Appends one code point below 0x10000 (what a \u escape can name).
inline void append_utf8(std::string& out, unsigned code) {
  const auto byte = [&out](unsigned value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

}  // namespace ranklog::standin
