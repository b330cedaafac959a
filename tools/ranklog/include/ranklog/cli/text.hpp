#pragma once
// Text as it lies on a terminal: how wide it is, and cut to fit.

#include <cstddef>
#include <string>
#include <string_view>

#include "ranklog/schema/printable.hpp"

namespace ranklog::cli {

// Columns that a terminal gives the text: 0 for combining marks, 2 for East Asian wide characters and emoji.
[[nodiscard]] std::size_t display_width(std::string_view text);

// At most `width` columns; what is cut ends in an ellipsis (one column; "..." where `ascii`).
[[nodiscard]] std::string cut_to(std::string_view text, std::size_t width, bool ascii = false);

enum class Align : unsigned char { kLeft, kRight };
// Filled with blanks to `width` columns; longer text is left as it is.
[[nodiscard]] std::string pad_to(std::string_view text, std::size_t width, Align align);

}  // namespace ranklog::cli
