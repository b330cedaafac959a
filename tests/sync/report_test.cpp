// What a report of problems ends with: the statuses and their order are frozen, scripts rely on them.
#include "ranklog/sync/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "ranklog/schema/error.hpp"

namespace ranklog::sync {
namespace {

// As the README and --help document it, by itself: the lowest rank decides.
struct Kind {
  const char* name;
  ErrorCode code;
  int status;        // where nothing is up
  int status_if_up;  // where something is
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"usage", ErrorCode::kUsage, 2, 2},     {"not found", ErrorCode::kNotFound, 1, 1},
      {"io", ErrorCode::kIo, 1, 1},           {"not ours", ErrorCode::kNotOurs, 5, 1},
      {"version", ErrorCode::kVersion, 5, 1}, {"damaged", ErrorCode::kDamaged, 5, 1},
      {"busy", ErrorCode::kBusy, 1, 1},       {"unauthorized", ErrorCode::kUnauthorized, 4, 4},
      {"server", ErrorCode::kServer, 1, 1},   {"temporary", ErrorCode::kTemporary, 75, 75},
      {"timeout", ErrorCode::kTimeout, 1, 1}, {"interrupted", ErrorCode::kInterrupted, 130, 130},
  };
  return all;
}

// "Of several, the first of: signal, 2, 4, 1, 5, 75."
int first_of(int one, int other) {
  for (const int status : {130, 2, 4, 1, 5, 75}) {
    if (one == status || other == status) return status;
  }
  return 0;
}

std::vector<PlanProblem> problems(const std::vector<ErrorCode>& codes) {
  std::vector<PlanProblem> out;
  for (const ErrorCode code : codes) out.push_back({code, "a problem"});
  return out;
}

TEST(ReportStatus, NoProblemIsZero) {
  EXPECT_EQ(exit_status(problems({}), false), 0);
  EXPECT_EQ(exit_status(problems({}), true), 0);
  EXPECT_EQ(exit_status(PushReport{}), 0);
}

TEST(ReportStatus, EveryKindHasTheDocumentedStatus) {
  for (const Kind& kind : kinds()) {
    EXPECT_EQ(exit_status(problems({kind.code}), false), kind.status) << kind.name;
    EXPECT_EQ(exit_status(problems({kind.code}), true), kind.status_if_up) << kind.name;
  }
}

TEST(ReportStatus, OfTwoKindsTheDocumentedOneDecidesWhicheverComesFirst) {
  for (const Kind& one : kinds()) {
    for (const Kind& other : kinds()) {
      SCOPED_TRACE(std::string(one.name) + " and " + other.name);
      EXPECT_EQ(exit_status(problems({one.code, other.code}), false), first_of(one.status, other.status));
      EXPECT_EQ(exit_status(problems({one.code, other.code}), true),
                first_of(one.status_if_up, other.status_if_up));
    }
  }
}

TEST(ReportStatus, OfAllKindsTogetherUsageDecidesAfterASignal) {
  std::vector<ErrorCode> codes;
  for (const Kind& kind : kinds()) codes.push_back(kind.code);
  EXPECT_EQ(exit_status(problems(codes), false), 130);
  std::erase(codes, ErrorCode::kInterrupted);
  EXPECT_EQ(exit_status(problems(codes), false), 2);
}

// A report that has the problem in one of the three places where there can be one.
PushReport report_with(const std::vector<PlanProblem>& of, int place) {
  PushReport report;
  report.experiments.resize(2);
  report.experiments.back().runs.resize(2);
  if (place == 0) report.problems = of;
  if (place == 1) report.experiments.back().problems = of;
  if (place == 2) report.experiments.back().runs.back().faults = of;
  return report;
}

TEST(ReportStatus, ProblemsAreFoundWhereverTheyAre) {
  for (int place = 0; place < 3; ++place) {
    for (const Kind& kind : kinds()) {
      EXPECT_EQ(exit_status(report_with(problems({kind.code}), place)), kind.status)
          << kind.name << " in place " << place;
    }
  }
}

TEST(ReportStatus, DamageBesideWhatIsUpIsPartial) {
  const std::vector<std::pair<RunOutcome, int>> expected = {{RunOutcome::kUploaded, kExitFailed},
                                                            {RunOutcome::kUpToDate, kExitFailed},
                                                            {RunOutcome::kPartial, kExitFailed},
                                                            {RunOutcome::kNothingYet, kExitDamaged},
                                                            {RunOutcome::kFailed, kExitDamaged}};
  for (const auto& [outcome, status] : expected) {
    for (int place = 0; place < 3; ++place) {
      PushReport report = report_with(problems({ErrorCode::kDamaged}), place);
      report.experiments.back().runs.front().outcome = outcome;
      EXPECT_EQ(exit_status(report), status) << to_string(outcome) << ", damage in place " << place;
    }
  }
}

TEST(ReportStatus, ASignalIsOverEverything) {
  for (const int signal : {SIGINT, SIGTERM}) {
    PushReport report;
    report.signal_number = signal;
    EXPECT_EQ(exit_status(report), 128 + signal) << "and nothing else";
    for (const Kind& kind : kinds()) {
      for (int place = 0; place < 3; ++place) {
        report = report_with(problems({kind.code}), place);
        report.signal_number = signal;
        EXPECT_EQ(exit_status(report), 128 + signal) << kind.name;
      }
    }
  }
}

}  // namespace
}  // namespace ranklog::sync
