#include "console_progress.hpp"

#include <gtest/gtest.h>

namespace ranklog::sync {
namespace {

// Under a test, standard error is captured into a file: no terminal.
std::string shown(bool quiet) {
  testing::internal::CaptureStderr();
  {
    ConsoleProgress progress(quiet);
    progress.expect_lines(10);
    progress.run_began("http://server/runs/r1");
    progress.count_lines(5);
    progress.notice("busy; trying again in 2 s");
  }
  return testing::internal::GetCapturedStderr();
}

TEST(ConsoleProgressTest, WithoutATerminalItPrintsPlainLines) {
  EXPECT_EQ(shown(false), "run http://server/runs/r1\nbusy; trying again in 2 s\n");
}

TEST(ConsoleProgressTest, QuietItSaysNothing) {
  EXPECT_EQ(shown(true), "");
}

}  // namespace
}  // namespace ranklog::sync
