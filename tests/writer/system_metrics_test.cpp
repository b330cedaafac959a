// When samples are taken, and what happens if one never comes back.

#include "system_metrics.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

#include "fake_environment.hpp"
#include "ranklog/schema/error.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::writer {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class Counting : public MetricSource {
 public:
  explicit Counting(int last) : last_(last) {}
  std::optional<std::vector<Metric>> sample() override {
    if (count_ == last_) return std::nullopt;
    return std::vector<Metric>{{"n", static_cast<double>(count_++)}};
  }

 private:
  int last_;
  int count_ = 0;
};

template <class Condition>
bool comes_true(Condition condition, std::chrono::milliseconds limit = 10s) {
  const auto deadline = steady_clock::now() + limit;
  while (!condition()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

TEST(Sampler, TakesTheFirstSampleAtOnceAndThenOneAnInterval) {
  std::atomic<int> rows{0};
  Sampler slow(1h, [] { return std::make_unique<Counting>(-1); }, [&](auto, auto) { ++rows; });
  EXPECT_TRUE(comes_true([&] { return rows == 1; }));
  std::atomic<int> many{0};
  Sampler fast(10ms, [] { return std::make_unique<Counting>(-1); }, [&](auto, auto) { ++many; });
  EXPECT_TRUE(comes_true([&] { return many >= 5; }));
  slow.stop();
  fast.stop();
  const int then = many;
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(many, then) << "no sample after stop()";
  EXPECT_EQ(rows, 1);
}

TEST(Sampler, EndsByItselfWhenThereIsNothingToMeasure) {
  std::atomic<int> rows{0};
  std::atomic<bool> gone{false};
  struct Ending : Counting {
    explicit Ending(std::atomic<bool>& flag) : Counting(2), flag_(flag) {}
    ~Ending() override { flag_ = true; }
    std::atomic<bool>& flag_;
  };
  Sampler sampler(1ms, [&] { return std::make_unique<Ending>(gone); }, [&](auto, auto) { ++rows; });
  EXPECT_TRUE(comes_true([&] { return gone.load(); }));
  EXPECT_EQ(rows, 2);
}

TEST(Sampler, IsLeftBehindWhereASampleHangs) {
  struct Hanging : MetricSource {
    std::optional<std::vector<Metric>> sample() override {
      hangs = true;
      while (!let_go) std::this_thread::sleep_for(1ms);
      woke = true;
      return std::vector<Metric>{{"late", 1}};
    }
    ~Hanging() override { gone = true; }
    Hanging(std::atomic<bool>& h, std::atomic<bool>& l, std::atomic<bool>& w, std::atomic<bool>& g)
        : hangs(h), let_go(l), woke(w), gone(g) {}
    std::atomic<bool>&hangs, &let_go, &woke, &gone;
  };
  std::atomic<bool> hangs{false}, let_go{false}, woke{false}, gone{false};
  std::atomic<int> rows{0};
  {
    Sampler sampler(
        1ms, [&] { return std::make_unique<Hanging>(hangs, let_go, woke, gone); },
        [&](auto, auto) { ++rows; });
    ASSERT_TRUE(comes_true([&] { return hangs.load(); }));
    const auto start = steady_clock::now();
    sampler.stop();
    EXPECT_LT(steady_clock::now() - start, 5s);
  }
  let_go = true;
  EXPECT_TRUE(comes_true([&] { return gone.load(); }));
  EXPECT_TRUE(woke);
  EXPECT_EQ(rows, 0) << "what comes after stop() goes nowhere";
}

TEST(SystemMetrics, AGpuThatHangsCostsItsOwnMetricsOnly) {
  ::setenv("RANKLOG_FAKE_NVML", "hang", 1);
  const test::TempDir dir;
  std::atomic<int> host_rows{0}, gpu_rows{0};
  SystemMetricsSettings settings;
  settings.interval = 10ms;
  settings.log_folder = dir.path();
  settings.nvml = FAKE_NVML;
  const auto start = steady_clock::now();
  {
    SystemMetrics metrics(settings, [&](auto, std::span<const Metric> row) {
      ++(row.front().key.starts_with("gpu.") ? gpu_rows : host_rows);
    });
    EXPECT_TRUE(comes_true([&] { return host_rows >= 3; }));
    metrics.stop();
  }
  EXPECT_LT(steady_clock::now() - start, 9s);
  EXPECT_EQ(gpu_rows, 0);
  ::unsetenv("RANKLOG_FAKE_NVML");  // it hangs on: a real one does too
}

TEST(SystemMetrics, TheIntervalIsTheCallersThenTheEnvironments) {
  using test::fake_environment;
  EXPECT_EQ(system_metrics_interval({}, fake_environment({})), 15s);
  EXPECT_EQ(system_metrics_interval({}, fake_environment({{"RANKLOG_SYSTEM_METRICS", "2.5"}})), 2500ms);
  EXPECT_EQ(system_metrics_interval({}, fake_environment({{"RANKLOG_SYSTEM_METRICS", "off"}})), 0s);
  EXPECT_EQ(system_metrics_interval({}, fake_environment({{"RANKLOG_SYSTEM_METRICS", "0"}})), 0s);
  EXPECT_EQ(system_metrics_interval({}, fake_environment({{"RANKLOG_SYSTEM_METRICS", "0.00001"}})), 100ms);
  EXPECT_EQ(system_metrics_interval(1s, fake_environment({{"RANKLOG_SYSTEM_METRICS", "off"}})), 1s);
  EXPECT_EQ(system_metrics_interval(0s, fake_environment({})), 0s);
  EXPECT_EQ(system_metrics_interval(1ms, fake_environment({})), 100ms);
  for (const char* text : {"often", "15s", "-1", "nan", "1e300"}) {
    try {
      static_cast<void>(system_metrics_interval({}, fake_environment({{"RANKLOG_SYSTEM_METRICS", text}})));
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

TEST(SystemMetrics, GpusCanBeLeftOut) {
  EXPECT_EQ(nvml_library(test::fake_environment({})), "libnvidia-ml.so.1");
  EXPECT_EQ(nvml_library(test::fake_environment({{"RANKLOG_NVML", "off"}})), "");
  EXPECT_EQ(nvml_library(test::fake_environment({{"RANKLOG_NVML", "/x/lib.so"}})), "/x/lib.so");
}

}  // namespace
}  // namespace ranklog::writer
