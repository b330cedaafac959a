#include "json_rows.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "secrets.hpp"

namespace ranklog::writer {
namespace {

using Json = nlohmann::ordered_json;

// Deeper values would recurse deeper than a caller's stack may allow.
constexpr int kDeepest = 200;

std::optional<Json> parse_object(std::string_view text) {
  bool too_deep = false;
  const auto watch_depth = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kDeepest;
    return !too_deep;
  };
  auto json = Json::parse(text.begin(), text.end(), watch_depth, false);
  if (too_deep || !json.is_object()) return std::nullopt;
  return json;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

class RowParser {
 public:
  explicit RowParser(JsonRow& row) : row_(row) {}

  void add_members(const Json& object) {
    for (auto member = object.begin(); member != object.end(); ++member) {
      path_.names.push_back(member.key());
      add(*member);
      path_.names.pop_back();
    }
  }

 private:
  void add(const Json& value) {
    if (value.is_object() && !value.empty() && !value.contains("_type")) {
      add_members(value);
    } else {
      row_.fields.push_back({path_, view(value)});
    }
  }

  ValueView view(const Json& value) {
    switch (value.type()) {
      case Json::value_t::null:
        return {};
      case Json::value_t::boolean:
        return value.get<bool>();
      case Json::value_t::number_float:
        return value.get<double>();
      case Json::value_t::number_integer:
        return value.get<std::int64_t>();
      case Json::value_t::number_unsigned:
        if (value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
          return value.get<std::int64_t>();
        }
        return ValueView::json(keep(dump(value)));
      case Json::value_t::string:
        return std::string_view(keep(value.get<std::string>()));
      default:
        return ValueView::json(keep(dump(value)));
    }
  }

  const std::string& keep(std::string text) { return row_.texts.emplace_back(std::move(text)); }

  JsonRow& row_;
  KeyPath path_;
};

}  // namespace

std::optional<JsonRow> parse_row(std::string_view object) {
  const auto json = parse_object(object);
  if (!json) return std::nullopt;
  JsonRow row;
  RowParser(row).add_members(*json);
  return row;
}

std::optional<std::vector<ConfigEntry>> parse_config(std::string_view object) {
  auto json = parse_object(object);
  if (!json) return std::nullopt;
  std::vector<ConfigEntry> entries;
  for (auto member = json->begin(); member != json->end(); ++member) {
    mask_secrets(member.key(), *member);
    entries.push_back({member.key(), dump(*member)});
  }
  return entries;
}

ConfigEntry make_config_entry(std::string_view key, ValueView value) {
  const bool is_text = value.kind() == ValueKind::kString || value.kind() == ValueKind::kJson;
  auto json = value.kind() == ValueKind::kJson
                  ? Json::parse(value.text().begin(), value.text().end(), nullptr, false)
                  : Json(Json::value_t::discarded);
  if (json.is_discarded()) {
    const bool secret = value.kind() != ValueKind::kNull && is_secret(key, is_text ? value.text() : kMask);
    if (secret) return {std::string(key), strict_json(kMask)};
    return {std::string(key), is_text ? strict_json(value.text()) : strict_json(value)};
  }
  mask_secrets(key, json);
  return {std::string(key), dump(json)};
}

std::string strict_json(ValueView value) {
  std::string json;
  const bool finite = value.kind() != ValueKind::kFloat64 || std::isfinite(value.as_double());
  if (!finite) json += '"';
  append_json(json, value);
  if (!finite) json += '"';
  return json;
}

bool is_json_object(std::string_view text) {
  return parse_object(text).has_value();
}

}  // namespace ranklog::writer
