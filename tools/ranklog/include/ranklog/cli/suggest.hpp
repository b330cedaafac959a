#pragma once
// "Did you mean ...": the known names nearest to what somebody typed.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ranklog::cli {

// Insertions, deletions, replacements and swaps of neighbours that turn one into the other; case costs
// nothing.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The best first, at most `limit`; only names that are plausibly meant: a few typing slips away, or holding
// the typed word.
[[nodiscard]] std::vector<std::string> nearest(std::string_view typed, std::span<const std::string> known,
                                               std::size_t limit = 3);

// "a, b or c"; empty for none.
[[nodiscard]] std::string join_alternatives(std::span<const std::string> names);

}  // namespace ranklog::cli
