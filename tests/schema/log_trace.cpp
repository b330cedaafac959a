// Logs a real history (tests/data/traces) through the writer, and lists beside the file what our own reader
// reads back, for read_with_python.py:
//   schema_log_trace TRACE.jsonl[.gz] FOLDER

#include <cstdlib>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "listing.hpp"
#include "ranklog/writer/writer.hpp"
#include "support/gzip.hpp"
#include "support/temp_dir.hpp"

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

// {"step": 0, "time": 0.278, "values": {...}}
void log_line(Writer& log, const std::string& line) {
  const auto row = nlohmann::ordered_json::parse(as_strict_json(line));
  std::vector<Field> fields;
  for (const auto& [key, value] : row.at("values").items()) fields.push_back({key, value_of(value)});
  const LogStatus status = log.log(row.at("step").get<std::int64_t>(), fields);
  if (status != LogStatus::kOk) throw std::runtime_error("not logged: " + line);
}

void run(const char* trace, const char* folder) {
  Options options;
  options.log_dir = folder;
  options.project = "traces";
  options.experiment = "trace";
  Writer log = Writer::open(options);
  std::istringstream lines(read_gzip_file(trace));
  for (std::string line; std::getline(lines, line);) log_line(log, line);
  if (!log.finish().durable) throw std::runtime_error("the log is not durable");
  write_file(log.folder() / "expected.jsonl",
             to_lines(list_file(log.path())) + to_lines(list_history(log.folder())));
}

}  // namespace
}  // namespace ranklog::test

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: schema_log_trace TRACE FOLDER\n";
    return 2;
  }
  ranklog::test::run(argv[1], argv[2]);
}
