// Writes rank files that hold some of everything, and what was logged as JSON, for read_with_python.py:
//   schema_write_sample FOLDER
// It ends without closing the second file, as a killed writer does.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ranklog/schema/history.hpp"
#include "ranklog/schema/naming.hpp"
#include "sample_rows.hpp"
#include "sample_series.hpp"
#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

// [kind, bits as a number or the text's bytes in hex]
Json to_json(ValueView value) {
  const int kind = static_cast<int>(value.kind());
  if (value.has_text()) return {kind, hex(value.text())};
  return {kind, value.kind() == ValueKind::kNull ? 0 : value.bits()};
}

// Logs, and remembers what it has logged.
class Sample {
 public:
  Sample(const fs::path& path, const Identity& identity, std::int64_t start_time_ns)
      : builder_(path, identity, start_time_ns), start_time_ns_(start_time_ns) {
    expected_["file"] = path.filename().string();
    expected_["rows"] = Json::array();
    expected_["config"] = Json::object();
    expected_["summary"] = Json::object();
    expected_["events"] = Json::array();
    expected_["artifacts"] = Json::array();
    expected_["files"] = Json::object();
    expected_["metrics"] = Json::object();
  }
  RankFileBuilder& builder() { return builder_; }
  Json& expected() { return expected_; }

  void row(std::int64_t step, const RankFileBuilder::Fields& fields, Stream stream = Stream::kHistory) {
    builder_.row(step, fields, stream);
    Json values = Json::object();
    for (const auto& [key, value] : fields) values[hex(key)] = to_json(value);
    expected_["rows"].push_back(
        {{"stream", index_of(stream)},
         {"sequence", builder_.sequence()},
         {"step", step},
         {"time_ns", start_time_ns_ + static_cast<std::int64_t>(builder_.sequence()) * 1'000'000},
         {"values", values}});
  }
  void config(const std::string& key, const std::string& json) {
    builder_.operation(ConfigEntry{key, json});
    expected_["config"][key] = json;
  }
  void summary(const std::string& key, const std::string& json) {
    builder_.operation(SummaryOverride{key, json});
    expected_["summary"][key] = json;
  }
  void metric(const MetricDefinition& metric) {
    builder_.operation(metric);
    expected_["metrics"][metric.name] = {metric.step_metric, metric.hidden, metric.step_sync, metric.summary,
                                         metric.goal};
  }
  void event(const Event& event) {
    builder_.operation(event);
    expected_["events"].push_back(
        {builder_.sequence(), event.step ? Json(*event.step) : Json(), event.kind, event.json});
  }
  void artifact(const Artifact& artifact) {
    builder_.operation(artifact);
    Json files = Json::array();
    for (const ArtifactFile& file : artifact.files) {
      files.push_back({file.name, file.path, file.size, file.md5, file.sha256, file.reference, file.json});
    }
    expected_["artifacts"].push_back({builder_.sequence(), artifact.name, artifact.type, artifact.description,
                                      artifact.step ? Json(*artifact.step) : Json(),
                                      artifact.ttl_seconds ? Json(*artifact.ttl_seconds) : Json(),
                                      artifact.aliases, artifact.tags, artifact.metadata_json, files});
  }
  void file(const RunFile& file) {
    builder_.operation(file);
    expected_["files"][file.name] = {builder_.sequence(), file.path, file.size, file.md5,
                                     file.sha256,         file.kind};
  }

 private:
  RankFileBuilder builder_;
  std::int64_t start_time_ns_;
  Json expected_;
};

void log_other_streams(Sample& sample, std::int64_t first) {
  for (int i = 0; i < 3; ++i) {
    sample.row(0, {{"cpu", 12.5 * i}, {"gpu\\.0\\.gpu", i}}, Stream::kSystem);
    const std::string line = "line \xFF " + std::to_string(i);
    sample.row(first + i, {{"text", line}, {"stderr", i == 1}}, Stream::kConsole);
  }
  sample.row(first, {{"text", "100 %"}, {"stderr", false}}, Stream::kConsole);
}

void log_some_of_everything(Sample& sample, std::int64_t first_step, bool seal) {
  std::int64_t step = first_step;
  sample.config("lr", first_step == 0 ? "0.1" : "0.01");
  sample.config("k" + std::to_string(first_step), R"({"nested": [1, null, "x"]})");
  sample.metric({"loss", "epoch", first_step == 0, true, {"min", "last"}, "minimize"});
  sample.summary("best\\.loss", std::to_string(first_step));
  for (const ValueView value : awkward_values()) {
    const std::string note = "text " + std::to_string(step);
    RankFileBuilder::Fields fields = {{"mixed", value}, {"a.b", static_cast<double>(step) / 3}};
    if (step % 2 == 0) fields.emplace_back("a\\.b", step * 1'000'003);
    if (step % 3 == 0) fields = {{"flag", step % 2 == 0}, {"note \xF0\x9F\x9A\x80", note}};
    sample.row(step++, fields);
    if (seal && step % 10 == 0) sample.builder().seal();
  }
  sample.event({0, 0, first_step, "barrier", R"({"seconds":0.25})"});
  sample.event({0, 0, {}, "note", "{}"});
  sample.artifact(
      {0,
       0,
       "job-model",
       "model",
       "with \"quotes\"",
       first_step,
       first_step,
       {"best"},
       {"t"},
       R"({"accuracy":0.9})",
       {{"model.pt", "checkpoints/step-1/model.pt", 123456789012, "d41d8cd98f00b204e9800998ecf8427e", "00"},
        {"b", "files/b", 0, "", ""},
        {"s", "", 99, "", "", "s3://bucket/s", R"({"etag":"abc","versionID":"v7"})"}}});
  sample.artifact({0, 0, "plain", "data", "", {}, {}, {}, {}, "{}", {}});
  sample.file({0, 0, "media/images/x_3.png", "files/" + std::to_string(first_step), 7, "ab", "cd", "media"});
  sample.file({0, 0, "notes.txt", "files/n", 0, "", "", "file"});
  log_other_streams(sample, first_step);
}

// Enough rows at once that columns are compressed one by one, and few enough that the chunk is one frame.
void log_every_encoding(Sample& sample) {
  std::int64_t step = 10'000;
  for (const std::size_t rows : {1500, 40}) {
    std::mt19937_64 random(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      RankFileBuilder::Fields fields;
      for (const Series& series : kSeries) fields.emplace_back(series.name, series.value(row, random));
      sample.row(step++, fields);
    }
    sample.builder().seal();
  }
}

void write(const fs::path& folder) {
  Json expected;
  Identity first = identity_of_rank(0, 2);
  first.tags = {"one", "two \"quoted\""};
  first.arguments = {"--epochs", "3"};
  Sample finished(folder / rank_file_name(0, 0), first, kStartTimeNs);
  log_some_of_everything(finished, 0, true);
  log_some_of_everything(finished, 1000, true);
  finished.row(5, {{"mixed", "back in steps"}});
  log_every_encoding(finished);
  finished.builder().finish(EndState::kFailed, 3);

  Identity second = identity_of_rank(0, 2);
  second.launch_token = "t1";
  second.resume_step = 20;
  Sample killed(folder / rank_file_name(0, 1), second, kStartTimeNs + 1'000'000'000'000);
  log_some_of_everything(killed, 20, true);
  killed.builder().commit_only();  // sealed, but the segment is still there
  killed.row(500, {{"mixed", 1}});
  killed.builder().next_segment();
  log_some_of_everything(killed, 600, false);
  killed.builder().next_segment();
  killed.row(700, {{"new key", -0.0}, {"mixed", nullptr}});
  std::ofstream(killed.builder().segment(), std::ios::app | std::ios::binary)
      << std::string("\x40\0\0\0torn", 8);
  test::write_file(tail_segment_path(killed.builder().path(), 9), encode_tail_header("another launch", 0));

  expected["files"] = {finished.expected(), killed.expected()};
  const ScanResult found = scan(std::vector<fs::path>{folder});
  RankHistory history(found.experiments.at(0), 0);
  HistoryRow row;
  expected["history"] = Json::array();
  while (history.next(row)) {
    Json values = Json::object();
    for (const HistoryCell& cell : row.cells)
      values[hex(history.keys()[cell.key].display())] = to_json(cell.value);
    expected["history"].push_back({row.step, row.time_ns, row.attempt, values});
  }
  expected["superseded_rows"] = history.counts().superseded_rows;
  std::ofstream(folder / "expected.json") << expected.dump();
  std::cout.flush();
  std::_Exit(0);
}

}  // namespace
}  // namespace ranklog::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: schema_write_sample FOLDER\n";
    return 2;
  }
  ranklog::test::write(argv[1]);
}
