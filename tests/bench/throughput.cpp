// How many scalars a second one rank gets to disk, for as long as it lasts: rows of the reference workload,
// logged as fast as they are taken and finished. Beside it, in the same run, a plain SQLite table with one
// row a point and one transaction a step (shorter, as it is slow). Prints JSON.
//
//   bench_throughput [rows [float32|float64]]

#include <sqlite3.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "ranklog/writer/writer.hpp"
#include "support/temp_dir.hpp"
#include "workload.hpp"

namespace {

using namespace ranklog;
using bench::kSeriesNames;
using bench::Width;
using bench::Workload;
using std::chrono::steady_clock;

constexpr std::size_t kTableRows = 500;

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

// Made beforehand, and repeated: the generator must not be what is measured.
std::vector<bench::WorkloadRow> make_rows(Width width) {
  constexpr std::int64_t kRows = 100'000;
  Workload workload(kRows, width);
  std::vector<bench::WorkloadRow> rows;
  for (std::int64_t i = 0; i < kRows; ++i) rows.push_back(workload.next());
  return rows;
}

struct Result {
  double scalars_per_second = 0;
  double caller_share = 0;  // of the time until all was taken, to the time until it was on disk
  std::uint64_t dropped_rows = 0;
  std::uint64_t file_bytes = 0;
};

Result measure_ranklog(const std::vector<bench::WorkloadRow>& rows, std::size_t count) {
  const test::TempDir dir;
  Options options;
  options.console = false;
  options.system_metrics_interval = std::chrono::milliseconds(0);
  options.log_dir = dir.path();
  auto log = Writer::open(options);
  std::vector<KeyedField> fields;
  for (const char* name : kSeriesNames) fields.push_back({log.key(name), 0.0});
  const auto start = steady_clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    const auto& row = rows[i % rows.size()];
    for (std::size_t k = 0; k < fields.size(); ++k) fields[k].value = row.values[k];
    log.log(static_cast<std::int64_t>(i), std::span<const KeyedField>(fields));
  }
  const double taken = seconds_since(start);
  const auto outcome = log.finish(EndState::kFinished, 0, std::chrono::minutes(10));
  const double total = seconds_since(start);
  return {static_cast<double>(count * fields.size()) / total, taken / total, outcome.dropped_rows,
          std::filesystem::file_size(log.path())};
}

double measure_table(const std::vector<bench::WorkloadRow>& rows) {
  const test::TempDir dir;
  sqlite3* database = nullptr;
  sqlite3_open((dir / "table.db").c_str(), &database);
  sqlite3_exec(database,
               "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
               "CREATE TABLE point(key INTEGER, step INTEGER, time REAL, value REAL, PRIMARY KEY(key, step)) "
               "WITHOUT ROWID",
               nullptr, nullptr, nullptr);
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(database, "INSERT INTO point VALUES(?1, ?2, ?3, ?4)", -1, &insert, nullptr);
  const auto start = steady_clock::now();
  for (std::size_t i = 0; i < kTableRows; ++i) {
    sqlite3_exec(database, "BEGIN", nullptr, nullptr, nullptr);
    for (std::size_t k = 0; k < rows[i].values.size(); ++k) {
      sqlite3_bind_int64(insert, 1, static_cast<sqlite3_int64>(k));
      sqlite3_bind_int64(insert, 2, rows[i].step);
      sqlite3_bind_double(insert, 3, static_cast<double>(rows[i].time_ns) * 1e-9);
      sqlite3_bind_double(insert, 4, rows[i].values[k]);
      sqlite3_step(insert);
      sqlite3_reset(insert);
    }
    sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr);
  }
  const double seconds = seconds_since(start);
  sqlite3_finalize(insert);
  sqlite3_close(database);
  return static_cast<double>(kTableRows * kSeriesNames.size()) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2'000'000;
  const bool wide = argc > 2 && std::strcmp(argv[2], "float64") == 0;
  if (count == 0) return 2;
  const auto rows = make_rows(wide ? Width::kFloat64 : Width::kFloat32);
  const Result result = measure_ranklog(rows, count);
  const double table = measure_table(rows);
  std::printf(
      "{\"rows\": %zu, \"values\": \"%s\", \"scalars_per_second\": %.4g, \"taken_after\": %.2f, "
      "\"dropped_rows\": %llu, \"file_bytes\": %llu, \"sqlite_table_scalars_per_second\": %.4g, "
      "\"ratio\": %.1f}\n",
      count, wide ? "float64" : "float32", result.scalars_per_second, result.caller_share,
      static_cast<unsigned long long>(result.dropped_rows),
      static_cast<unsigned long long>(result.file_bytes), table, result.scalars_per_second / table);
}
