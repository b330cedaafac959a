// What a log costs the metadata server of a shared file system: 16,384 ranks share one.

#include <gtest/gtest.h>

#include <fstream>

#include "helpers.hpp"
#include "support/process.hpp"
#include "write_mode.hpp"

namespace ranklog {
namespace {

struct Counted {
  int seals = 0, idle = 0;
};

// Calls about names or sizes of files below `folder`, in the two phases of idle_writer.
Counted count_calls(const std::filesystem::path& trace, const std::string& folder) {
  Counted counted;
  int* phase = nullptr;
  std::ifstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("/mark-seals") != std::string::npos) phase = &counted.seals;
    if (line.find("/mark-idle") != std::string::npos) phase = &counted.idle;
    if (line.find("/mark-end") != std::string::npos) phase = nullptr;
    if (phase != nullptr && line.find(folder) != std::string::npos) ++*phase;
  }
  return counted;
}

bool may_trace() {
  test::Process probe("/usr/bin/env", {"strace", "-o", "/dev/null", "true"});
  return probe.wait() == 0;
}

TEST(Metadata, OfASharedFileSystemIsAskedForAtMostFiveTimesAMinute) {
  if (!may_trace()) GTEST_SKIP() << "strace is not there, or not allowed";
  const test::TempDir dir;
  const auto trace = dir / "trace";
  const auto folder = dir / "logs";
  test::Process traced(
      "/usr/bin/env",
      {"strace", "-f", "-y", "-o", trace.string(), "-e", "trace=%file,ftruncate,fallocate,fstat,getdents64",
       RANKLOG_IDLE_WRITER, folder.string()},
      {{"RANKLOG_FILE_SYSTEM", "nfs"},
       {"RANKLOG_JOURNAL", ""},
       {"RANKLOG_TAIL", ""},
       {"ASAN_OPTIONS", "detect_leaks=0"}});
  ASSERT_EQ(traced.wait(), 0) << traced.errors();
  const auto counted = count_calls(trace, folder.string());

  using Minutes = std::chrono::duration<double, std::ratio<60>>;
  const auto nfs = [](std::string_view name) -> std::optional<std::string> {
    return name == "RANKLOG_FILE_SYSTEM" ? std::optional<std::string>("nfs") : std::nullopt;
  };
  const auto mode = writer::choose_write_mode(dir.path(), {}, nfs, 1);
  const double a_seal = counted.seals / 5.0;
  const double logging_slowly = a_seal / Minutes(mode.seal_interval).count();
  const double silent = a_seal / Minutes(mode.heartbeat).count();
  RecordProperty("calls_per_seal", std::to_string(a_seal));
  std::printf("{\"calls_a_seal\": %.1f, \"calls_a_minute\": %.2f}\n", a_seal, logging_slowly);
  EXPECT_EQ(counted.idle, 0) << "calls between seals";
  EXPECT_GT(a_seal, 0);
  EXPECT_LE(logging_slowly, 5);
  EXPECT_LE(silent, 5);
}

}  // namespace
}  // namespace ranklog
