#pragma once
// What the server holds, for programs and for people.

#include <chrono>
#include <string>

#include "store.hpp"

namespace ranklog::standin {

[[nodiscard]] Json state_json(Store& store, long long now_ms, std::chrono::milliseconds crash_after);

// The same as tables that fit `width` columns.
[[nodiscard]] std::string state_text(const Json& state, std::size_t width, bool color);

}  // namespace ranklog::standin
