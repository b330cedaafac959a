// Writes rank files that hold some of everything, and expected.jsonl, what was logged, for
// read_with_python.py:
//   schema_write_sample FOLDER
// It ends without closing the second file, as a killed writer does.

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "logged_file.hpp"
#include "ranklog/schema/naming.hpp"
#include "sample_rows.hpp"
#include "sample_series.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::test {
namespace {

namespace fs = std::filesystem;

void log_other_streams(LoggedFile& file, std::int64_t first) {
  for (int i = 0; i < 3; ++i) {
    file.row(0, {{"cpu", 12.5 * i}, {"gpu\\.0\\.gpu", i}}, Stream::kSystem);
    const std::string line = "line \xFF " + std::to_string(i);
    file.row(first + i, {{"text", line}, {"stderr", i == 1}}, Stream::kConsole);
  }
  file.row(first, {{"text", "100 %"}, {"stderr", false}}, Stream::kConsole);
}

void log_records(LoggedFile& file, std::int64_t number) {
  file.log(ConfigEntry{"lr", number == 0 ? "0.1" : "0.01"});
  file.log(ConfigEntry{"k" + std::to_string(number), R"({"nested": [1, null, "x"]})"});
  file.log(MetricDefinition{"loss", "epoch", number == 0, true, {"min", "last"}, "minimize"});
  file.log(SummaryOverride{"best\\.loss", std::to_string(number)});
  file.log(Event{0, 0, number, "barrier", R"({"seconds":0.25})"});
  file.log(Event{0, 0, {}, "note", "{}"});
  Artifact artifact;
  artifact.name = "job-model";
  artifact.type = "model";
  artifact.description = "with \"quotes\"";
  artifact.step = artifact.ttl_seconds = number;
  artifact.aliases = {"best"};
  artifact.tags = {"t"};
  artifact.metadata_json = R"({"accuracy":0.9})";
  artifact.files = {{"model.pt", "checkpoints/step-1/model.pt", 123456789012, "d41d8cd98f00b204e98009", "00"},
                    {"b", "files/b", 0, "", ""},
                    {"s", "", 99, "", "", "s3://bucket/s", R"({"etag":"abc","versionID":"v7"})"}};
  file.log(artifact);
  Artifact plain;
  plain.name = "plain";
  plain.type = "data";
  plain.metadata_json = "{}";
  file.log(plain);
  file.log(RunFile{0, 0, "media/images/x_3.png", "files/" + std::to_string(number), 7, "ab", "cd", "media"});
  file.log(RunFile{0, 0, "notes.txt", "files/n", 0, "", "", "file"});
}

void log_some_of_everything(LoggedFile& file, std::int64_t first_step, bool seal) {
  std::int64_t step = first_step;
  for (const ValueView value : awkward_values()) {
    const std::string note = "text " + std::to_string(step);
    RankFileBuilder::Fields fields = {{"mixed", value}, {"a.b", static_cast<double>(step) / 3}};
    if (step % 2 == 0) fields.emplace_back("a\\.b", step * 1'000'003);
    if (step % 3 == 0) fields = {{"flag", step % 2 == 0}, {"note \xF0\x9F\x9A\x80", note}};
    file.row(step++, fields);
    if (seal && step % 10 == 0) file.builder().seal();
  }
  log_records(file, first_step);
  log_other_streams(file, first_step);
}

// Enough rows at once that columns are compressed one by one, and few enough that the chunk is one frame.
void log_every_encoding(LoggedFile& file) {
  std::int64_t step = 10'000;
  for (const std::size_t rows : {1500, 40}) {
    std::mt19937_64 random(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      RankFileBuilder::Fields fields;
      for (const Series& series : kSeries) fields.emplace_back(series.name, series.value(row, random));
      file.row(step++, fields);
    }
    file.builder().seal();
  }
}

void write(const fs::path& folder) {
  Identity first = identity_of_rank(0, 2);
  first.tags = {"one", "two \"quoted\""};
  first.arguments = {"--epochs", "3"};
  LoggedFile finished(folder / rank_file_name(0, 0), first, kStartTimeNs);
  log_some_of_everything(finished, 0, true);
  log_some_of_everything(finished, 1000, true);
  finished.row(5, {{"mixed", "back in steps"}});
  log_every_encoding(finished);
  finished.log(Event{0, 0, 11'530, "rewind", "{}"});
  finished.row(11'530, {{"mixed", "after the rewind"}});
  finished.finish(EndState::kFailed, 3);

  Identity second = identity_of_rank(0, 2);
  second.launch_token = "t1";
  second.resume_step = 20;
  LoggedFile killed(folder / rank_file_name(0, 1), second, kStartTimeNs + 1'000'000'000'000);
  log_some_of_everything(killed, 20, true);
  killed.builder().commit_only();  // sealed, but the segment is still there
  killed.row(500, {{"mixed", 1}});
  killed.builder().next_segment();
  log_some_of_everything(killed, 600, false);
  killed.builder().next_segment();
  killed.row(700, {{"new key", -0.0}, {"mixed", nullptr}});
  killed.log(Event{0, 0, 625, "rewind", "{}"});
  killed.row(626, {{"mixed", nullptr}});
  killed.log(Event{0, 0, 15, "rewind", "{}"});  // and into the earlier file
  killed.row(16, {{"mixed", 16}});
  std::ofstream(killed.builder().segment(), std::ios::app | std::ios::binary)
      << std::string("\x40\0\0\0torn", 8);
  write_file(tail_segment_path(killed.builder().path(), 9), encode_tail_header("another launch", 0));

  const std::string lines = to_lines(finished.listing()) + to_lines(killed.listing());
  write_file(folder / "expected.jsonl", lines + to_lines(list_history(folder)));
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
