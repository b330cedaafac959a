// Bytes a point on the reference workload, everything counted: the finished file as a user finds it, beside
// the entropy of the noise in it and beside peers that hold the same rows. Prints JSON.
//
//   bench_file_size [steps [float32|float64]]

#include <sqlite3.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "gorilla.hpp"
#include "ranklog/writer/writer.hpp"
#include "support/temp_dir.hpp"
#include "workload.hpp"

namespace {

namespace fs = std::filesystem;
using namespace ranklog;
using bench::kSeriesNames;
using bench::Workload;
using bench::WorkloadRow;

double ranklog_bytes(const std::vector<WorkloadRow>& rows, const fs::path& folder) {
  Options options;
  options.console = false;
  options.system_metrics_interval = std::chrono::milliseconds(0);
  options.log_dir = folder;
  auto log = Writer::open(options);
  std::vector<Field> fields(kSeriesNames.size());
  for (const WorkloadRow& row : rows) {
    for (std::size_t i = 0; i < fields.size(); ++i) fields[i] = {kSeriesNames[i], row.values[i]};
    if (log.log(row.step, fields) != LogStatus::kOk) throw std::runtime_error("a row was not taken");
  }
  if (!log.finish().durable) throw std::runtime_error("the file could not be finished");
  return static_cast<double>(fs::file_size(log.path()));
}

void run(sqlite3* connection, const char* sql) {
  if (sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error(sqlite3_errmsg(connection));
  }
}

// One row a point, as most home-grown loggers have it.
double sqlite_bytes(const std::vector<WorkloadRow>& rows, const fs::path& path) {
  sqlite3* connection = nullptr;
  if (sqlite3_open(path.c_str(), &connection) != SQLITE_OK) throw std::runtime_error("no database");
  run(connection, "CREATE TABLE point(key INTEGER, step INTEGER, time_us INTEGER, value REAL); BEGIN");
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(connection, "INSERT INTO point VALUES(?1, ?2, ?3, ?4)", -1, &insert, nullptr);
  for (const WorkloadRow& row : rows) {
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      sqlite3_bind_int64(insert, 1, static_cast<sqlite3_int64>(i));
      sqlite3_bind_int64(insert, 2, row.step);
      sqlite3_bind_int64(insert, 3, row.time_ns / 1000);
      sqlite3_bind_double(insert, 4, row.values[i]);
      if (sqlite3_step(insert) != SQLITE_DONE) throw std::runtime_error("no insert");
      sqlite3_reset(insert);
    }
  }
  sqlite3_finalize(insert);
  run(connection, "COMMIT");
  sqlite3_close(connection);
  return static_cast<double>(fs::file_size(path));
}

std::string print(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string csv_of(const std::vector<WorkloadRow>& rows) {
  std::string text;
  for (const WorkloadRow& row : rows) {
    text += std::to_string(row.step) + "," + std::to_string(row.time_ns / 1000);
    for (const double value : row.values) text += "," + print("%.17g", value);
    text += '\n';
  }
  return text;
}

std::string json_lines_of(const std::vector<WorkloadRow>& rows) {
  std::string text;
  for (const WorkloadRow& row : rows) {
    text += "{\"_step\":" + std::to_string(row.step) +
            ",\"_timestamp\":" + print("%.6f", static_cast<double>(row.time_ns) / 1e9);
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      text += std::string(",\"") + kSeriesNames[i] + "\":" + print("%.17g", row.values[i]);
    }
    text += "}\n";
  }
  return text;
}

double zstd_bytes(const std::string& text, int level) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  return static_cast<double>(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), level));
}

// Step and time once a row, which is kinder than the paper's one time a point.
double gorilla_bytes(const std::vector<WorkloadRow>& rows) {
  bench::GorillaTimes times;
  std::array<bench::GorillaSeries, kSeriesNames.size()> series;
  for (const WorkloadRow& row : rows) {
    times.add(row.time_ns / 1000);
    for (std::size_t i = 0; i < series.size(); ++i) series[i].add(row.values[i]);
  }
  double bytes = times.bytes();
  for (const auto& one : series) bytes += one.bytes();
  return bytes;
}

void measure(std::int64_t steps, bench::Width width) {
  Workload workload(steps, width);
  std::vector<WorkloadRow> rows;
  rows.reserve(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) rows.push_back(workload.next());
  const double points = static_cast<double>(steps) * static_cast<double>(kSeriesNames.size());
  const double bound = workload.entropy_bits() / 8;
  const test::TempDir dir;
  const double ours = ranklog_bytes(rows, dir.path());
  const std::string csv = csv_of(rows);
  const auto line = [&](const char* name, double bytes, const char* end) {
    std::printf("  \"%s\": {\"bytes_per_point\": %.3f, \"times_ranklog\": %.2f}%s\n", name, bytes / points,
                bytes / ours, end);
  };
  std::printf("{\n  \"steps\": %lld, \"values\": \"%s\",\n", static_cast<long long>(steps),
              width == bench::Width::kFloat32 ? "float32" : "float64");
  std::printf("  \"ranklog\": {\"bytes_per_point\": %.3f, \"times_entropy\": %.3f},\n", ours / points,
              ours / bound);
  line("entropy", bound, ",");
  line("gorilla", gorilla_bytes(rows), ",");
  line("csv_zstd_19", zstd_bytes(csv, 19), ",");
  line("csv", static_cast<double>(csv.size()), ",");
  line("json_lines", static_cast<double>(json_lines_of(rows).size()), ",");
  line("sqlite_table", sqlite_bytes(rows, dir.path() / "plain.db"), "");
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 20'000;
  const bool wide = argc > 2 && std::string(argv[2]) == "float64";
  if (steps < 1) return 2;
  try {
    measure(steps, wide ? bench::Width::kFloat64 : bench::Width::kFloat32);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_file_size: %s\n", error.what());
    return 1;
  }
}
