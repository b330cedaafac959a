// What one log() of ten scalars costs its caller: by string keys, by registered keys, and beside a control in
// the same run: a clock read and a copy of the row's bytes into a hot buffer. Each call is timed by two clock
// reads, which are in all figures. Prints JSON. State results as a ratio, or as control + x: the machine's
// own noise is in both.
//
//   bench_log_latency [rows [rows per second of each thread; 0: as fast as they go [threads]]]

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "ranklog/writer/writer.hpp"
#include "support/temp_dir.hpp"

namespace {

using std::chrono::steady_clock;

constexpr std::size_t kScalars = 10;
constexpr std::size_t kRowBytes = 120;

struct Load {
  std::size_t rows = 300'000;
  std::size_t rate = 100'000;
  std::size_t threads = 1;
};

using Nanoseconds = std::vector<std::int64_t>;

// Calls at the asked rate, spinning in between, and times each call; `prepare` is not timed.
template <class Prepare, class Call>
Nanoseconds measure(const Load& load, Prepare prepare, Call call) {
  Nanoseconds latencies;
  latencies.reserve(load.rows);
  const auto start = steady_clock::now();
  for (std::size_t row = 0; row < load.rows; ++row) {
    if (load.rate > 0) {
      const auto due = start + std::chrono::nanoseconds(1'000'000'000ULL * row / load.rate);
      while (steady_clock::now() < due) continue;
    }
    prepare(row);
    const auto before = steady_clock::now();
    call(row);
    const auto after = steady_clock::now();
    latencies.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(after - before).count());
  }
  return latencies;
}

// `measure_one(thread)` on each thread at once.
template <class Measure>
Nanoseconds on_threads(const Load& load, Measure measure_one) {
  std::vector<Nanoseconds> of_threads(load.threads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < load.threads; ++i) {
      threads.emplace_back([&, i] { of_threads[i] = measure_one(i); });
    }
    of_threads[0] = measure_one(0);
  }
  Nanoseconds all;
  for (const auto& latencies : of_threads) all.insert(all.end(), latencies.begin(), latencies.end());
  return all;
}

void print(const char* name, Nanoseconds latencies, const char* end) {
  std::sort(latencies.begin(), latencies.end());
  const auto at = [&](double share) {
    return static_cast<long long>(
        latencies[static_cast<std::size_t>(share * static_cast<double>(latencies.size() - 1))]);
  };
  constexpr std::int64_t kStall = 1'000'000;
  const auto stalls = latencies.end() - std::lower_bound(latencies.begin(), latencies.end(), kStall);
  std::printf(
      "  \"%s\": {\"p50_ns\": %lld, \"p99_ns\": %lld, \"p99_9_ns\": %lld, \"max_ns\": %lld, "
      "\"over_1_ms\": %lld}%s\n",
      name, at(0.5), at(0.99), at(0.999), at(1.0), static_cast<long long>(stalls), end);
}

Nanoseconds measure_control(const Load& load) {
  std::array<char, kRowBytes> source{};
  std::vector<char> target(kRowBytes * 4096);
  return measure(
      load, [&](std::size_t row) { std::memcpy(source.data() + 8, &row, sizeof row); },
      [&](std::size_t row) {
        const auto now = std::chrono::system_clock::now().time_since_epoch().count();
        std::memcpy(source.data(), &now, sizeof now);
        std::memcpy(target.data() + kRowBytes * (row % 4096), source.data(), kRowBytes);
      });
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kScalars; ++i) names.push_back("train/metric_" + std::to_string(i));
  return names;
}

double value_of(std::size_t row, std::size_t i) {
  return static_cast<double>(row * kScalars + i) * 0.001;
}

template <class FieldType, class MakeKey>
Nanoseconds measure_log(const Load& load, ranklog::Writer& log, MakeKey make_key) {
  std::vector<FieldType> fields;
  for (std::size_t i = 0; i < kScalars; ++i) fields.push_back({make_key(i), 0.0});
  return measure(
      load,
      [&](std::size_t row) {
        for (std::size_t i = 0; i < kScalars; ++i) fields[i].value = value_of(row, i);
      },
      [&](std::size_t row) { log.log(static_cast<std::int64_t>(row), std::span<const FieldType>(fields)); });
}

}  // namespace

int main(int argc, char** argv) {
  Load load;
  const auto argument = [&](int i, std::size_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  load.rows = argument(1, load.rows);
  load.rate = argument(2, load.rate);
  load.threads = argument(3, load.threads);
  if (load.rows == 0 || load.threads == 0) return 2;
  const ranklog::test::TempDir dir;
  ranklog::Options options;
  options.console = false;
  options.system_metrics_interval = std::chrono::milliseconds(0);
  options.log_dir = dir.path();
  auto log = ranklog::Writer::open(options);
  const auto names = key_names();
  auto control = on_threads(load, [&](std::size_t) { return measure_control(load); });
  auto by_string = on_threads(load, [&](std::size_t) {
    return measure_log<ranklog::Field>(load, log, [&](std::size_t i) { return std::string_view(names[i]); });
  });
  auto registered = on_threads(load, [&](std::size_t) {
    return measure_log<ranklog::KeyedField>(load, log, [&](std::size_t i) { return log.key(names[i]); });
  });
  const auto outcome = log.finish();
  std::printf(
      "{\n  \"rows\": %zu, \"scalars\": %zu, \"rows_per_second\": %zu, \"threads\": %zu, \"dropped_rows\": "
      "%llu, "
      "\"file_bytes\": %llu,\n",
      load.rows, kScalars, load.rate, load.threads, static_cast<unsigned long long>(outcome.dropped_rows),
      static_cast<unsigned long long>(std::filesystem::file_size(log.path())));
  print("control", std::move(control), ",");
  print("string_keys", std::move(by_string), ",");
  print("registered_keys", std::move(registered), "");
  std::printf("}\n");
  return outcome.durable ? 0 : 1;
}
