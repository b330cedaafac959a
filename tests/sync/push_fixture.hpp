#pragma once
// Pushes of experiments on disk to the fake W&B, with time that does not pass.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments.hpp"
#include "fake_wandb.hpp"
#include "fakes.hpp"
#include "ranklog/sync/push.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::sync::test {

inline constexpr std::int64_t kMuchLater = kStartTimeNs + 86'400'000'000'000;

// The first line in which two texts differ; empty: none.
inline std::string first_difference(const std::string& got, const std::string& want) {
  if (got == want) return "";
  const auto [at, other] = std::mismatch(got.begin(), got.end(), want.begin(), want.end());
  const auto offset = static_cast<std::size_t>(at - got.begin());
  const std::size_t begin = got.rfind('\n', offset == 0 ? 0 : offset - 1);
  const std::size_t from = begin == std::string::npos ? 0 : begin;
  return "got" + got.substr(from, 300) + "\nwant" + want.substr(from, 300);
}

class PushTest : public ::testing::Test {
 protected:
  PushTest() { options_.server.base_url = "http://server"; }

  PushReport push_to(FakeWandb& server, const PlanOptions& plan_options = {}) {
    PlanOptions with_time = plan_options;
    with_time.now_ns = kMuchLater;
    const std::vector<std::filesystem::path> everything = {logs_.path()};
    const Plan plan = make_plan(inputs_.empty() ? everything : inputs_, with_time);
    const Environment environment = environment_of({{"WANDB_API_KEY", key_}});
    return push(plan, options_, {environment, server, clock_, stop_, progress_});
  }
  PushReport push_as(FakeWandb& server, Strategy strategy) {
    PlanOptions plan_options;
    plan_options.strategy = strategy;
    return push_to(server, plan_options);
  }
  static const RunReport& run_of(const PushReport& report, std::size_t run = 0) {
    return report.experiments.at(0).runs.at(run);
  }
  static std::string fault_of(const PushReport& report, std::size_t run = 0) {
    const RunReport& found = run_of(report, run);
    return found.faults.empty() ? "" : found.faults.front().message;
  }
  // Everything that was said, for assertions that fail.
  static std::string said(const PushReport& report) { return report_text(report, true); }

  ranklog::test::TempDir logs_;
  std::vector<std::filesystem::path> inputs_;  // empty: all logs
  PushOptions options_;
  std::string key_ = std::string(40, 'k');
  FakeClock clock_;
  StopFlag stop_;
  Progress progress_;
};

}  // namespace ranklog::sync::test
