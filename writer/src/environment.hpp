#pragma once
// Small helpers over EnvLookup that several parts of the writer share.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/writer/launch.hpp"

namespace ranklog::writer {

// A variable that is set to the empty text counts as not set, as it does for W&B.
[[nodiscard]] std::optional<std::string> lookup(const EnvLookup& environment, std::string_view name);

// The first of several names that is set; also tells which.
struct NamedText {
  std::string name;
  std::string text;
};
[[nodiscard]] std::optional<NamedText> lookup_any(const EnvLookup& environment,
                                                  std::initializer_list<std::string_view> names);

// "1", "true", "yes", "on" in any case.
[[nodiscard]] bool is_true(std::string_view text);

// The whole text as a number without a sign; empty for anything else.
[[nodiscard]] std::optional<int> parse_count(std::string_view text);

// "a, b,," is {"a", "b"}.
[[nodiscard]] std::vector<std::string> split_at_commas(const std::string& list);

}  // namespace ranklog::writer
