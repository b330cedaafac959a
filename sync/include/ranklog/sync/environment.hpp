#pragma once
// Environment variables behind a function, so that what depends on them can be tested.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ranklog::sync {

// Looks up a variable; empty if it is unset or holds nothing.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

[[nodiscard]] Environment process_environment();

// true, 1, yes, on (any case).
[[nodiscard]] bool is_true(std::string_view text) noexcept;

}  // namespace ranklog::sync
