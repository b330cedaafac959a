#include "script.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "ranklog/schema/suggest.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

bool matches(const std::string& pattern, const std::string& text) {
  return pattern.empty() || matches_pattern(pattern, text);
}

std::uint64_t parse_count(std::string_view text) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count == 0) {
    throw ApiError(400, "\"at\" counts requests from 1, as 2, \"2-4\" or \"2-\"");
  }
  return count;
}

// Unlike check_input(), whose words are the real server's, this speaks to whoever writes the script.
void check_fields(const std::string& what, const Json& json, const std::vector<std::string>& known) {
  const std::string fields = join_alternatives(known);
  if (!json.is_object()) throw ApiError(400, "a " + what + " is an object with " + fields);
  for (const auto& [name, value] : json.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw ApiError(400, "a " + what + " has no field \"" + std::string(name) + "\", only " + fields);
  }
}

std::string header_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void take_answer(Fault& fault, const Json& json) {
  fault.status = json.value("status", 0);
  const Json body = json.value("body", Json(nullptr));
  if (body.is_null() && fault.status >= 400) {
    fault.body = Json{{"errors", {{{"message", "scripted status " + std::to_string(fault.status)}}}}}.dump();
  } else if (!body.is_null()) {
    fault.body = body.is_string() ? body.get<std::string>() : body.dump();
  }
  const Json headers = json.value("headers", Json::object());
  for (const auto& [name, value] : headers.items()) fault.headers[name] = header_text(value);
  if (json.contains("retry_after")) fault.headers["Retry-After"] = header_text(json["retry_after"]);
}

}  // namespace

Script::Script(const Json& json) {
  check_fields("script", json, {"rules"});
  const Json rules = json.value("rules", Json::array());
  if (!rules.is_array()) throw ApiError(400, "\"rules\" must be a list");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    try {
      rules_.push_back(parse_rule(rules[i]));
    } catch (const std::exception& problem) {
      throw ApiError(400, "rule " + std::to_string(i + 1) + " of the script: " + problem.what());
    }
  }
}

Script::Rule Script::parse_rule(const Json& json) {
  check_fields("rule", json,
               {"method", "path", "operation", "at", "action", "status", "retry_after", "headers", "body",
                "delay_ms", "process"});
  Rule rule;
  rule.method = json.value("method", "");
  rule.path = json.value("path", "");
  rule.operation = json.value("operation", "");
  rule.at = parse_at(json.value("at", Json(nullptr)));
  rule.fault = parse_fault(json);
  return rule;
}

std::vector<Script::Range> Script::parse_at(const Json& at) {
  std::vector<Range> ranges;
  if (at.is_null()) return ranges;
  if (at.is_array()) {
    for (const Json& one : at) {
      for (const Range range : parse_at(one)) ranges.push_back(range);
    }
    return ranges;
  }
  const std::string text = header_text(at);
  const std::size_t dash = text.find('-');
  Range range;
  range.first = parse_count(std::string_view(text).substr(0, dash));
  range.last = range.first;
  if (dash != std::string::npos) {
    const bool open = dash + 1 == text.size();
    range.last = open ? std::numeric_limits<std::uint64_t>::max() : parse_count(text.substr(dash + 1));
  }
  ranges.push_back(range);
  return ranges;
}

Fault Script::parse_fault(const Json& json) {
  Fault fault;
  fault.name = json.value("action", json.contains("delay_ms") ? "delay" : "");
  fault.delay = std::chrono::milliseconds(json.value("delay_ms", 0));
  if (fault.name == "status") {
    take_answer(fault, json);
    fault.process = json.value("process", false);
    if (fault.status < 100 || fault.status > 599) throw ApiError(400, "\"status\" must be an HTTP status");
  } else if (fault.name == "cut_before" || fault.name == "cut_after") {
    fault.cut = true;
    fault.process = fault.name == "cut_after";
  } else if (fault.name == "half_body") {
    fault.half_body = true;
  } else if (fault.name != "delay") {
    throw ApiError(400, "\"action\" must be status, cut_before, cut_after, half_body or delay");
  }
  return fault;
}

Fault Script::next(const std::string& method, const std::string& path, const std::string& operation) {
  const Rule* decider = nullptr;
  for (Rule& rule : rules_) {
    const bool fits =
        matches(rule.method, method) && matches(rule.path, path) && matches(rule.operation, operation);
    if (!fits) continue;
    ++rule.seen;
    const bool due = rule.at.empty() || std::any_of(rule.at.begin(), rule.at.end(), [&](const Range& range) {
                       return range.first <= rule.seen && rule.seen <= range.last;
                     });
    if (due && decider == nullptr) decider = &rule;
  }
  return decider == nullptr ? Fault{} : decider->fault;
}

}  // namespace ranklog::standin
