#include "trace.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "gzip.hpp"

namespace ranklog::test {
namespace {

// A trace has the tokens of numbers that JSON does not have; they become texts, which no trace has otherwise.
std::string as_strict_json(std::string line) {
  for (const std::string_view token : {"NaN", "Infinity", "-Infinity"}) {
    const std::string bare = ": " + std::string(token), quoted = ": \"" + std::string(token) + '"';
    for (std::size_t at = 0; (at = line.find(bare, at)) != std::string::npos; at += quoted.size()) {
      line.replace(at, bare.size(), quoted);
    }
  }
  return line;
}

ValueView value_of(const nlohmann::ordered_json& json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_null()) return nullptr;
  if (json.is_number_float()) return json.get<double>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  const auto& text = json.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return kInfinity;
  if (text == "-Infinity") return -kInfinity;
  return text;
}

}  // namespace

std::vector<TraceRow> read_trace(const std::filesystem::path& path) {
  std::vector<TraceRow> rows;
  std::istringstream lines(read_gzip_file(path));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::ordered_json::parse(as_strict_json(std::move(line)));
    TraceRow& row = rows.emplace_back();
    row.step = json.at("step");
    for (const auto& [key, value] : json.at("values").items()) {
      row.values.emplace_back(key, Value(value_of(value)));
    }
  }
  return rows;
}

}  // namespace ranklog::test
