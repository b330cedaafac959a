// Bytes of a real history, everything counted: the finished file as a user finds it, beside peers that hold
// the same rows. Prints JSON.
//
//   bench_trace_size TRACE.jsonl[.gz] ...

#include <sqlite3.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "gorilla.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "ranklog/writer/writer.hpp"
#include "support/temp_dir.hpp"
#include "support/trace.hpp"

namespace {

namespace fs = std::filesystem;
using namespace ranklog;
using test::TraceRow;

struct Logged {
  double bytes = 0;
  std::vector<std::int64_t> times_us;  // of the rows, as the writer took them: the peers keep them too
};

Logged log_all(const std::vector<TraceRow>& rows, const fs::path& folder) {
  Options options;
  options.log_dir = folder;
  auto log = Writer::open(options);
  for (const TraceRow& row : rows) {
    std::vector<Field> fields;
    for (const auto& [key, value] : row.values) fields.push_back({key, value.view()});
    if (log.log(row.step, fields) != LogStatus::kOk) throw std::runtime_error("a row was not taken");
  }
  if (!log.finish().durable) throw std::runtime_error("the file could not be finished");
  const RankFile file = RankFile::open(log.path());
  std::map<std::uint64_t, std::int64_t> times;
  for (std::size_t i = 0; i < file.row_groups().size(); ++i) {
    const RowGroup group = file.load(i);
    for (std::size_t row = 0; row < group.rows(); ++row)
      times[group.sequence[row]] = group.time_ns[row] / 1000;
  }
  Logged logged{static_cast<double>(fs::file_size(log.path())), {}};
  for (const auto& [sequence, time] : times) logged.times_us.push_back(time);
  return logged;
}

std::string text_of(const Value& value) {
  std::string text;
  append_json(text, value.view());
  return text;
}

std::string csv_of(const std::vector<TraceRow>& rows, const Logged& logged) {
  std::map<std::string, std::size_t> columns;
  for (const TraceRow& row : rows) {
    for (const auto& [key, value] : row.values) columns.try_emplace(key, columns.size());
  }
  std::string text;
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    cells.assign(columns.size(), "");
    for (const auto& [key, value] : rows[i].values) cells[columns.at(key)] = text_of(value);
    text += std::to_string(rows[i].step) + "," + std::to_string(logged.times_us[i]);
    for (const std::string& cell : cells) text += "," + cell;
    text += '\n';
  }
  return text;
}

std::string json_lines_of(const std::vector<TraceRow>& rows, const Logged& logged) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += "{\"_step\":" + std::to_string(rows[i].step) +
            ",\"_timestamp\":" + std::to_string(static_cast<double>(logged.times_us[i]) / 1e6);
    for (const auto& [key, value] : rows[i].values) {
      text += ',';
      append_json_string(text, key);
      text += ":" + text_of(value);
    }
    text += "}\n";
  }
  return text;
}

double zstd_bytes(const std::string& text) {
  constexpr int kLevel = 19;
  std::string out(ZSTD_compressBound(text.size()), '\0');
  return static_cast<double>(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), kLevel));
}

// Step and time once a row; what is no number, which that scheme has nothing for, as text in zstd -19.
double gorilla_bytes(const std::vector<TraceRow>& rows, const Logged& logged) {
  bench::GorillaTimes times, steps;
  std::map<std::string, bench::GorillaSeries> series;
  std::string texts;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    times.add(logged.times_us[i]);
    steps.add(rows[i].step);
    for (const auto& [key, value] : rows[i].values) {
      if (value.view().is_number()) {
        series[key].add(value.view().as_double());
      } else {
        texts += text_of(value) + "\n";
      }
    }
  }
  double bytes = times.bytes() + steps.bytes() + (texts.empty() ? 0 : zstd_bytes(texts));
  for (const auto& [key, one] : series) bytes += one.bytes();
  return bytes;
}

void execute(sqlite3* connection, const char* sql) {
  if (sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error(sqlite3_errmsg(connection));
  }
}

void bind(sqlite3_stmt* insert, int index, ValueView value) {
  if (value.has_text()) {
    sqlite3_bind_text(insert, index, value.text().data(), static_cast<int>(value.text().size()),
                      SQLITE_TRANSIENT);
  } else if (value.kind() == ValueKind::kFloat64) {
    sqlite3_bind_double(insert, index, value.as_double());
  } else if (value.kind() == ValueKind::kInt64) {
    sqlite3_bind_int64(insert, index, value.as_int64());
  } else {
    sqlite3_bind_null(insert, index);
  }
}

// One row a point.
double sqlite_bytes(const std::vector<TraceRow>& rows, const Logged& logged, const fs::path& path) {
  sqlite3* connection = nullptr;
  if (sqlite3_open(path.c_str(), &connection) != SQLITE_OK) throw std::runtime_error("no database");
  execute(connection, "CREATE TABLE point(key INTEGER, step INTEGER, time_us INTEGER, value); BEGIN");
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(connection, "INSERT INTO point VALUES(?1, ?2, ?3, ?4)", -1, &insert, nullptr);
  std::map<std::string, int> keys;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [key, value] : rows[i].values) {
      sqlite3_bind_int64(insert, 1, keys.try_emplace(key, static_cast<int>(keys.size())).first->second);
      sqlite3_bind_int64(insert, 2, rows[i].step);
      sqlite3_bind_int64(insert, 3, logged.times_us[i]);
      bind(insert, 4, value.view());
      if (sqlite3_step(insert) != SQLITE_DONE) throw std::runtime_error("no insert");
      sqlite3_reset(insert);
    }
  }
  sqlite3_finalize(insert);
  execute(connection, "COMMIT");
  sqlite3_close(connection);
  return static_cast<double>(fs::file_size(path));
}

void measure(const fs::path& trace, std::size_t most_rows) {
  std::vector<TraceRow> rows = test::read_trace(trace);
  rows.resize(std::min(rows.size(), most_rows));
  double points = 0;
  for (const TraceRow& row : rows) points += static_cast<double>(row.values.size());
  const test::TempDir dir;
  const Logged logged = log_all(rows, dir.path());
  const auto times = [&](double bytes) { return bytes / logged.bytes; };
  std::printf(
      "{\"trace\": \"%s\", \"rows\": %zu, \"bytes\": %.0f, \"bytes_per_point\": %.2f, "
      "\"times_ranklog\": {\"gorilla\": %.2f, \"csv_zstd_19\": %.2f, \"json_lines\": %.2f, "
      "\"sqlite_table\": %.2f}}\n",
      trace.filename().c_str(), rows.size(), logged.bytes, logged.bytes / points,
      times(gorilla_bytes(rows, logged)), times(zstd_bytes(csv_of(rows, logged))),
      times(static_cast<double>(json_lines_of(rows, logged).size())),
      times(sqlite_bytes(rows, logged, dir.path() / "plain.db")));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i) {
      for (const std::size_t rows : {std::size_t{26}, std::size_t{1000}, std::size_t{1} << 30}) {
        measure(argv[i], rows);
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_trace_size: %s\n", error.what());
    return 1;
  }
}
