#pragma once
// JSON as callers pass it, taken apart into what is recorded.

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/schema/records.hpp"
#include "recorder.hpp"

namespace ranklog::writer {

// One row from a JSON object. The fields point into `texts`.
struct JsonRow {
  std::vector<PathField> fields;
  std::deque<std::string> texts;
};

// Nested objects become key paths; lists, empty objects and objects with "_type" one JSON value; integers
// beyond int64 keep their digits as JSON. Empty for what is not a JSON object.
[[nodiscard]] std::optional<JsonRow> parse_row(std::string_view object);

// One entry a top-level key, secrets masked. Empty for what is not a JSON object.
[[nodiscard]] std::optional<std::vector<ConfigEntry>> parse_config(std::string_view object);
[[nodiscard]] ConfigEntry make_config_entry(std::string_view key, ValueView value);

// JSON of one value; NaN and infinities as the strings "NaN", "Infinity", "-Infinity", which W&B reads where
// JSON must be strict.
[[nodiscard]] std::string strict_json(ValueView value);

[[nodiscard]] bool is_json_object(std::string_view text);

}  // namespace ranklog::writer
