#include "history_query.hpp"

#include <algorithm>
#include <limits>

#include "loose_json.hpp"

namespace ranklog::standin {
namespace {

Json thinned(const Json& all, const Json& samples) {
  if (!samples.is_number_integer() || samples.get<long long>() < 1) return all;
  const auto limit = samples.get<std::size_t>();
  if (all.size() <= limit) return all;
  Json kept = Json::array();
  for (std::size_t i = 0; i < limit; ++i) {
    kept.push_back(all[limit == 1 ? 0 : i * (all.size() - 1) / (limit - 1)]);
  }
  return kept;
}

std::int64_t bound(const Json& given, std::int64_t fallback) {
  return given.is_number_integer() ? given.get<std::int64_t>() : fallback;
}

const char* type_of(const Json& value) {
  if (value.is_number()) return "number";
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return text == "NaN" || text == "Infinity" || text == "-Infinity" ? "number" : "string";
  }
  if (value.is_object() && value.contains("_type") && value["_type"].is_string()) {
    return value["_type"].get_ref<const std::string&>().c_str();
  }
  return value.is_boolean() ? "boolean" : value.is_null() ? "nil" : value.is_array() ? "list" : "map";
}

// Nested objects are shown as a.b; typed ones (histograms, images) are values.
void count_keys(const std::string& prefix, const Json& row,
                std::map<std::string, std::map<std::string, int>>& counts) {
  for (const auto& [name, value] : row.items()) {
    if (value.is_object() && !value.contains("_type")) {
      count_keys(prefix + name + ".", value, counts);
    } else {
      ++counts[prefix + name][type_of(value)];
    }
  }
}

bool has_keys(const Json& row, const Json& keys) {
  return std::all_of(keys.begin(), keys.end(), [&](const Json& key) {
    return key.is_string() && row.contains(key.get<std::string>());
  });
}

Json sampled(const Run& run, const Json& spec) {
  const Json keys = spec.value("keys", Json::array());
  Json rows = Json::array();
  const LineFile& lines = run.lines(kHistoryFile);
  for (std::uint64_t i = 0; i < lines.count(); ++i) {
    const auto row = parse_loose(lines.line(i));
    if (row && row->is_object() && has_keys(*row, keys)) rows.push_back(*row);
  }
  return thinned(rows, spec.value("samples", Json(nullptr)));
}

}  // namespace

Json history_lines(const Run& run, const Json& min_step, const Json& max_step, const Json& samples) {
  const std::int64_t low = bound(min_step, std::numeric_limits<std::int64_t>::min());
  const std::int64_t high = bound(max_step, std::numeric_limits<std::int64_t>::max());
  const LineFile& lines = run.lines(kHistoryFile);
  Json out = Json::array();
  for (std::uint64_t i = 0; i < lines.count(); ++i) {
    const RowFacts& row = run.rows()[i];
    const std::int64_t step = row.step.value_or(static_cast<std::int64_t>(i));
    if (row.is_object && low <= step && step < high) out.push_back(lines.line(i));
  }
  return thinned(out, samples);
}

Json stream_lines(const LineFile& lines, const Json& samples) {
  Json out = Json::array();
  for (std::uint64_t i = 0; i < lines.count(); ++i) out.push_back(lines.line(i));
  return thinned(out, samples);
}

Json sampled_history(const Run& run, const Json& specs) {
  Json out = Json::array();
  for (const Json& text : specs) {
    const auto spec = text.is_string() ? parse_loose(text.get_ref<const std::string&>()) : std::nullopt;
    if (!spec || !spec->is_object()) throw ApiError(400, "a history spec is not a JSON object");
    out.push_back(sampled(run, *spec));
  }
  return out;
}

Json history_keys(const Run& run) {
  std::map<std::string, std::map<std::string, int>> counts;
  const LineFile& lines = run.lines(kHistoryFile);
  std::int64_t last_step = -1;
  for (std::uint64_t i = 0; i < lines.count(); ++i) {
    const auto row = parse_loose(lines.line(i));
    if (row && row->is_object()) count_keys("", *row, counts);
    last_step = std::max(last_step, run.rows()[i].step.value_or(-1));
  }
  Json keys = Json::object();
  for (const auto& [key, types] : counts) {
    Json list = Json::array();
    for (const auto& [type, count] : types) list.push_back({{"type", type}, {"count", count}});
    keys[key] = {{"typeCounts", list}};
  }
  return {{"keys", keys}, {"lastStep", last_step}, {"sets", Json::array()}};
}

std::string tail(const LineFile& lines) {
  Json list = Json::array();
  if (lines.count() > 0) list.push_back(lines.line(lines.count() - 1));
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ranklog::standin
