#pragma once
// "Did you mean ...": the known names nearest to what somebody typed.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ranklog {

// Insertions, deletions, replacements and swaps of neighbours that turn one into the other; case costs
// nothing.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The best first, at most `limit`; only names that are plausibly meant: a few typing slips away, or holding
// the typed word.
[[nodiscard]] std::vector<std::string> nearest(std::string_view typed, std::span<const std::string> known,
                                               std::size_t limit = 3);

// "did you mean --json?" for a message of a command line's parser that names an unknown flag, such as "The
// following argument was not expected: --jsn"; empty if no flag of `known` ("--json", ...) is near.
[[nodiscard]] std::string hint_for_flag(std::string_view message, std::span<const std::string> known);

// "a, b or c"; empty for none.
[[nodiscard]] std::string join_alternatives(std::span<const std::string> names);

}  // namespace ranklog
