#pragma once
// What the tables share: the columns that say where a row comes from, and how values are handed to SQLite.

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "filter.hpp"
#include "table.hpp"

namespace ranklog::sql {

// Every table begins with these, in this order.
enum PlaceColumn : int { kProject, kExperiment, kAttempt, kRank, kLocalRank, kNode, kPlaceColumns };
[[nodiscard]] std::vector<ColumnSpec> place_columns();
// The place columns, then `own`.
[[nodiscard]] std::vector<ColumnSpec> with_place(std::vector<ColumnSpec> own);
[[nodiscard]] ColumnSpec all_attempts_column();

[[nodiscard]] bool in_place(const Filter& filter, const SourceFile& source);
void result_place(sqlite3_context* out, int column, const SourceFile& source);

void result_text(sqlite3_context* out, std::string_view text);
void result_optional(sqlite3_context* out, std::optional<std::int64_t> value);
// NaN, which SQLite has no REAL for, comes as NULL.
void result_value(sqlite3_context* out, ValueView value);
// Unix seconds.
[[nodiscard]] double seconds(std::int64_t ns);
// A list of texts as a JSON array.
void result_list(sqlite3_context* out, const std::vector<std::string>& texts);

}  // namespace ranklog::sql
