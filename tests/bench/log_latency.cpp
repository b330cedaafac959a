// What one log() of ten scalars costs its caller, beside a control in the same run: a clock read and a copy
// of the row's bytes into a hot buffer. Prints JSON. State results as a ratio, or as control + x: the
// machine's own noise is in both.
//
//   bench_log_latency [rows [rows per second; 0: as fast as they go]]

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "ranklog/writer/writer.hpp"
#include "support/temp_dir.hpp"

namespace {

using ranklog::Field;
using std::chrono::steady_clock;

constexpr std::size_t kScalars = 10;
constexpr std::size_t kRowBytes = 120;

struct Latencies {
  std::vector<std::int64_t> nanoseconds;

  void print(const char* name, const char* end) {
    std::sort(nanoseconds.begin(), nanoseconds.end());
    const auto at = [&](double share) {
      return static_cast<long long>(
          nanoseconds[static_cast<std::size_t>(share * static_cast<double>(nanoseconds.size() - 1))]);
    };
    std::printf("  \"%s\": {\"p50_ns\": %lld, \"p99_ns\": %lld, \"p99_9_ns\": %lld, \"max_ns\": %lld}%s\n",
                name, at(0.5), at(0.99), at(0.999), at(1.0), end);
  }
};

// Calls at the asked rate, spinning in between, and times each call.
template <class Call>
Latencies measure(std::size_t rows, std::size_t rate, Call call) {
  Latencies latencies;
  latencies.nanoseconds.reserve(rows);
  const auto start = steady_clock::now();
  for (std::size_t row = 0; row < rows; ++row) {
    if (rate > 0) {
      const auto due = start + std::chrono::nanoseconds(1'000'000'000ULL * row / rate);
      while (steady_clock::now() < due) continue;
    }
    const auto before = steady_clock::now();
    call(row);
    const auto after = steady_clock::now();
    latencies.nanoseconds.push_back(
        std::chrono::duration_cast<std::chrono::nanoseconds>(after - before).count());
  }
  return latencies;
}

Latencies measure_control(std::size_t rows, std::size_t rate) {
  std::array<char, kRowBytes> source{};
  std::vector<char> target(kRowBytes * 4096);
  return measure(rows, rate, [&](std::size_t row) {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    std::memcpy(source.data(), &now, sizeof now);
    std::memcpy(target.data() + kRowBytes * (row % 4096), source.data(), kRowBytes);
  });
}

Latencies measure_log(std::size_t rows, std::size_t rate, ranklog::Writer& log) {
  std::vector<std::string> names;
  names.reserve(kScalars);
  for (std::size_t i = 0; i < kScalars; ++i) names.push_back("train/metric_" + std::to_string(i));
  std::vector<Field> fields(kScalars);
  return measure(rows, rate, [&](std::size_t row) {
    for (std::size_t i = 0; i < kScalars; ++i)
      fields[i] = {names[i], static_cast<double>(row * kScalars + i) * 0.001};
    log.log(static_cast<std::int64_t>(row), fields);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 300'000;
  const std::size_t rate = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100'000;
  if (rows == 0) return 2;
  const ranklog::test::TempDir dir;
  ranklog::Options options;
  options.log_dir = dir.path();
  auto log = ranklog::Writer::open(options);
  auto control = measure_control(rows, rate);
  auto logged = measure_log(rows, rate, log);
  const auto outcome = log.finish();
  std::printf(
      "{\n  \"rows\": %zu, \"scalars\": %zu, \"rows_per_second\": %zu, \"dropped_rows\": %llu, "
      "\"file_bytes\": %llu,\n",
      rows, kScalars, rate, static_cast<unsigned long long>(outcome.dropped_rows),
      static_cast<unsigned long long>(std::filesystem::file_size(log.path())));
  control.print("control", ",");
  logged.print("log", "");
  std::printf("}\n");
  return outcome.durable ? 0 : 1;
}
