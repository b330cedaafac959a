#pragma once
// JSON as W&B clients write it in history, summary and config: with the bare tokens NaN, Infinity and
// -Infinity, which a strict parser refuses.

#include <optional>
#include <string>
#include <string_view>

#include "api_error.hpp"

namespace ranklog::standin {

// The same text with each bare token put in quotes, which is how W&B itself writes them in strict JSON.
[[nodiscard]] std::string quote_bare_tokens(std::string_view text);

// Empty if the text is not JSON even so.
[[nodiscard]] std::optional<Json> parse_loose(std::string_view text);

}  // namespace ranklog::standin
