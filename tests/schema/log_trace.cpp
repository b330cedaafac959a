// Logs a real history (tests/data/traces) through the writer, and lists beside the file what our own reader
// reads back, for read_with_python.py:
//   schema_log_trace TRACE.jsonl[.gz] FOLDER

#include <iostream>
#include <stdexcept>

#include "listing.hpp"
#include "ranklog/writer/writer.hpp"
#include "support/temp_dir.hpp"
#include "support/trace.hpp"

namespace ranklog::test {
namespace {

void run(const char* trace, const char* folder) {
  Options options;
  options.log_dir = folder;
  options.project = "traces";
  options.experiment = "trace";
  Writer log = Writer::open(options);
  for (const TraceRow& row : read_trace(trace)) {
    std::vector<Field> fields;
    for (const auto& [key, value] : row.values) fields.push_back({key, value.view()});
    if (log.log(row.step, fields) != LogStatus::kOk) throw std::runtime_error("a row was not taken");
  }
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
