// GPUs through a driver library that is none.

#include "gpu_metrics.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace ranklog::writer {
namespace {

using Numbers = std::map<std::string, double>;

class GpuMetricsTest : public testing::Test {
 protected:
  void SetUp() override { tell(""); }
  void TearDown() override { ::unsetenv("RANKLOG_FAKE_NVML"); }
  static void tell(const char* wish) { ::setenv("RANKLOG_FAKE_NVML", wish, 1); }
  static Numbers numbers(GpuMetrics& metrics) {
    Numbers found;
    const auto row = metrics.sample();
    for (const auto& metric : row.value()) found[metric.key] = metric.value;
    return found;
  }
};

TEST_F(GpuMetricsTest, AllGpusOfANodeUnderWandbsNames) {
  GpuMetrics metrics(GpuScope::kNode, FAKE_NVML, 77);
  const auto found = numbers(metrics);
  const Numbers first{{"gpu.0.gpu", 97},
                      {"gpu.0.memory", 41},
                      {"gpu.0.memoryAllocated", 25},
                      {"gpu.0.memoryAllocatedBytes", 20.0 * (1 << 30)},
                      {"gpu.0.temp", 65},
                      {"gpu.0.powerWatts", 350.5},
                      {"gpu.0.enforcedPowerLimitWatts", 701},
                      {"gpu.0.powerPercent", 50},
                      {"gpu.0.smClock", 1980},
                      {"gpu.0.memoryClock", 2619},
                      {"gpu.0.correctedMemoryErrors", 5},
                      {"gpu.0.uncorrectedMemoryErrors", 1},
                      {"gpu.0.fanSpeed", 30}};
  for (const auto& [key, value] : first) {
    ASSERT_TRUE(found.contains(key)) << key;
    EXPECT_DOUBLE_EQ(found.at(key), value) << key;
  }
  EXPECT_EQ(found.at("gpu.1.gpu"), 12);
  EXPECT_FALSE(found.contains("gpu.process.0.gpu"));
  EXPECT_FALSE(found.contains("gpu.process.1.gpu"));
}

TEST_F(GpuMetricsTest, AFailedQuestionCostsItsOwnValueOnly) {
  GpuMetrics metrics(GpuScope::kNode, FAKE_NVML, 77);
  const auto found = numbers(metrics);
  EXPECT_EQ(found.at("gpu.1.powerWatts"), 350.5);
  EXPECT_FALSE(found.contains("gpu.1.enforcedPowerLimitWatts"));
  EXPECT_FALSE(found.contains("gpu.1.powerPercent"));
  EXPECT_FALSE(found.contains("gpu.1.fanSpeed"));
}

TEST_F(GpuMetricsTest, WhatAGpuDoesNotSupportIsAskedOnce) {
  const auto calls = reinterpret_cast<unsigned (*)()>(
      ::dlsym(::dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL), "fake_nvml_fan_calls"));
  ASSERT_NE(calls, nullptr);
  const unsigned before = calls();
  GpuMetrics metrics(GpuScope::kNode, FAKE_NVML, 77);
  numbers(metrics);
  numbers(metrics);
  EXPECT_EQ(calls() - before, 1U);
}

TEST_F(GpuMetricsTest, AGpuThatIsLostComesBack) {
  GpuMetrics metrics(GpuScope::kNode, FAKE_NVML, 77);
  tell("lost");
  EXPECT_EQ(numbers(metrics), Numbers());
  tell("");
  EXPECT_EQ(numbers(metrics).at("gpu.0.gpu"), 97);
}

TEST_F(GpuMetricsTest, AProcessGetsTheGpusThatItUses) {
  tell("77");
  GpuMetrics metrics(GpuScope::kProcess, FAKE_NVML, 77);
  const Numbers expected{{"gpu.process.1.gpu", 12},
                         {"gpu.process.1.memory", 3},
                         {"gpu.process.1.memoryAllocated", 25},
                         {"gpu.process.1.memoryAllocatedBytes", 20.0 * (1 << 30)},
                         {"gpu.process.1.temp", 40},
                         {"gpu.process.1.powerWatts", 350.5}};
  EXPECT_EQ(numbers(metrics), expected);
  GpuMetrics other(GpuScope::kProcess, FAKE_NVML, 78);
  EXPECT_EQ(numbers(other), Numbers());
  GpuMetrics node(GpuScope::kNode, FAKE_NVML, 77);
  EXPECT_EQ(numbers(node).at("gpu.process.1.gpu"), numbers(node).at("gpu.1.gpu"));
}

TEST_F(GpuMetricsTest, WithoutALibraryOrADriverThereIsNothing) {
  GpuMetrics no_library(GpuScope::kNode, "libranklog-no-such-library.so.1", 77);
  EXPECT_FALSE(no_library.sample());
  tell("none");
  GpuMetrics no_driver(GpuScope::kNode, FAKE_NVML, 77);
  EXPECT_FALSE(no_driver.sample());
}

}  // namespace
}  // namespace ranklog::writer
