#include "ranklog/schema/value.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "utf8.hpp"

namespace ranklog {
namespace {

constexpr std::size_t kNumberChars = 32;  // the longest shortest text of a double has 24

void append_integer(std::string& out, std::int64_t value) {
  std::array<char, kNumberChars> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), result.ptr);
}

void append_double(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "Infinity" : "-Infinity";
  } else if (value == 0 && std::signbit(value)) {
    out += "-0.0";  // "-0" is an integer token to most readers, which loses the sign
  } else {
    std::array<char, kNumberChars> buffer;
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    out.append(buffer.data(), result.ptr);
  }
}

// The short escapes of JSON, or \u00XX.
void append_control(std::string& out, unsigned char byte) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (byte) {
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    default:
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
  }
}

}  // namespace

bool same_value(ValueView a, ValueView b) noexcept {
  if (a.kind() != b.kind()) return false;
  if (a.has_text()) return a.text() == b.text();
  return a.kind() == ValueKind::kNull || a.bits() == b.bits();
}

void append_json(std::string& out, ValueView value) {
  switch (value.kind()) {
    case ValueKind::kNull:
      out += "null";
      return;
    case ValueKind::kFloat64:
      append_double(out, value.as_double());
      return;
    case ValueKind::kInt64:
      append_integer(out, value.as_int64());
      return;
    case ValueKind::kBool:
      out += value.as_bool() ? "true" : "false";
      return;
    case ValueKind::kString:
      append_json_string(out, value.text());
      return;
    case ValueKind::kJson:
      out += value.text();
      return;
  }
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i++];
    } else if (byte < 0x20) {
      append_control(out, byte);
      ++i;
    } else if (byte < 0x80) {
      out += text[i++];
    } else if (const std::size_t length = utf8_sequence_length(text.substr(i)); length != 0) {
      out += text.substr(i, length);
      i += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  out += '"';
}

}  // namespace ranklog
