#pragma once
// One logged value: what it is, and a view of it that costs nothing to pass around.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ranklog {

// Frozen: these numbers are on disk (FORMAT.md, "Value kinds").
enum class ValueKind : std::uint8_t {
  kNull = 0,
  kFloat64 = 1,  // any bit pattern; NaN and infinities are values like any other
  kInt64 = 2,    // exact over its whole range
  kBool = 3,
  kString = 4,  // UTF-8
  kJson = 5,    // JSON text: lists, and W&B's typed objects ({"_type": "histogram", ...})
};

// Non-owning. A text must outlive the call that the view is passed to. 24 bytes; copy it.
class ValueView {
 public:
  constexpr ValueView() noexcept = default;  // null
  constexpr ValueView(std::nullptr_t) noexcept {}
  template <std::floating_point T>
  constexpr ValueView(T value) noexcept
      : kind_(ValueKind::kFloat64), bits_(std::bit_cast<std::uint64_t>(static_cast<double>(value))) {}
  template <std::integral T>
    requires(!std::same_as<T, bool> && (sizeof(T) < 8 || std::signed_integral<T>))
  constexpr ValueView(T value) noexcept
      : kind_(ValueKind::kInt64), bits_(static_cast<std::uint64_t>(static_cast<std::int64_t>(value))) {}
  template <std::same_as<bool> T>
  constexpr ValueView(T value) noexcept : kind_(ValueKind::kBool), bits_(value ? 1 : 0) {}
  constexpr ValueView(std::string_view text) noexcept : kind_(ValueKind::kString), text_(text) {}
  constexpr ValueView(const char* text) noexcept : kind_(ValueKind::kString), text_(text) {}
  ValueView(const std::string& text) noexcept : kind_(ValueKind::kString), text_(text) {}

  // Rebuilds a value from its parts, as they are stored.
  static constexpr ValueView scalar(ValueKind kind, std::uint64_t bits) noexcept {
    ValueView v;
    v.kind_ = kind;
    v.bits_ = bits;
    return v;
  }
  static constexpr ValueView json(std::string_view text) noexcept {
    ValueView v;
    v.kind_ = ValueKind::kJson;
    v.text_ = text;
    return v;
  }

  [[nodiscard]] constexpr ValueKind kind() const noexcept { return kind_; }
  [[nodiscard]] constexpr bool is_number() const noexcept {
    return kind_ == ValueKind::kFloat64 || kind_ == ValueKind::kInt64;
  }
  // The 64 bits of a float64, an int64 or a bool (0 or 1).
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr double as_double() const noexcept {
    return kind_ == ValueKind::kFloat64 ? std::bit_cast<double>(bits_) : static_cast<double>(as_int64());
  }
  [[nodiscard]] constexpr std::int64_t as_int64() const noexcept { return static_cast<std::int64_t>(bits_); }
  [[nodiscard]] constexpr bool as_bool() const noexcept { return bits_ != 0; }
  // The text of a string or of JSON; empty otherwise.
  [[nodiscard]] constexpr std::string_view text() const noexcept { return text_; }
  [[nodiscard]] constexpr bool has_text() const noexcept {
    return kind_ == ValueKind::kString || kind_ == ValueKind::kJson;
  }

 private:
  ValueKind kind_ = ValueKind::kNull;
  std::uint64_t bits_ = 0;
  std::string_view text_;
};

// Owning counterpart, for values that outlive their source.
class Value {
 public:
  Value() = default;
  explicit Value(ValueView v) : kind_(v.kind()), bits_(v.bits()), text_(v.text()) {}
  [[nodiscard]] ValueView view() const noexcept {
    switch (kind_) {
      case ValueKind::kString:
        return ValueView(std::string_view(text_));
      case ValueKind::kJson:
        return ValueView::json(text_);
      default:
        return ValueView::scalar(kind_, bits_);
    }
  }

 private:
  ValueKind kind_ = ValueKind::kNull;
  std::uint64_t bits_ = 0;
  std::string text_;
};

// Bit-for-bit equality of kind and content: NaN equals the same NaN, 0.0 differs from -0.0.
[[nodiscard]] bool same_value(ValueView a, ValueView b) noexcept;

// JSON text of one value, with the tokens NaN, Infinity and -Infinity where W&B's history lines have them;
// integers as integer tokens; float64 by the shortest text that reads back to the same bits (integral ones
// keep their exponent or fraction only where std::to_chars needs it). Appends to `out`.
void append_json(std::string& out, ValueView value);

// A JSON string literal, quotes included; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace ranklog
