#pragma once
// What a rank file holds, as lines of JSON that a reader in another language can make too
// (read_with_python.py).
//
// {"file": name, <what>: <content>} for each of: meta, key, row, config, metric, summary, event, artifact,
// run_file; then {"history": ...} for each step. A value is [kind, its 64 bits or its text]; a text that is
// not UTF-8 is {"hex": digits}.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/schema/history.hpp"
#include "ranklog/schema/rank_file.hpp"

namespace ranklog::test {

using Json = nlohmann::json;
using Listing = std::vector<Json>;

[[nodiscard]] Json text_to_list(std::string_view text);
[[nodiscard]] Json value_to_list(ValueView value);

// `content` of one line.
[[nodiscard]] Json meta_to_list(const FileInfo& info);
[[nodiscard]] Json row_to_list(Stream stream, std::uint64_t sequence, std::int64_t step, std::int64_t time_ns,
                               Json values);
[[nodiscard]] Json to_list(const ConfigEntry& entry);
[[nodiscard]] Json to_list(const MetricDefinition& metric);
[[nodiscard]] Json to_list(const SummaryOverride& entry);
[[nodiscard]] Json to_list(const Event& event);
[[nodiscard]] Json to_list(const Artifact& artifact);
[[nodiscard]] Json to_list(const RunFile& file);

// As our own reader sees it: a file, and the history of rank 0 of the only experiment in a folder.
[[nodiscard]] Listing list_file(const std::filesystem::path& path);
[[nodiscard]] Listing list_history(const std::filesystem::path& folder);

[[nodiscard]] std::string to_lines(const Listing& listing);
[[nodiscard]] Listing parse_lines(std::string_view lines);

}  // namespace ranklog::test
