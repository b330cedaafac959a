// What a log records by itself, as a reader finds it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "helpers.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog {
namespace {

using namespace std::chrono_literals;

// Lines by number: a later row of a number replaces an earlier one.
std::map<std::int64_t, std::string> read_console(const std::filesystem::path& path) {
  const auto file = RankFile::open(path);
  std::map<std::int64_t, std::pair<std::uint64_t, std::string>> lines;
  for (std::size_t i = 0; i < file.row_groups(Stream::kConsole).size(); ++i) {
    const RowGroup group = file.load(i, Stream::kConsole);
    for (std::size_t row = 0; row < group.rows(); ++row) {
      std::string text;
      for (const auto& column : group.columns) {
        const auto key = file.keys().at(column.key()).display();
        if (key == "text") text += column.at(row).text();
        if (key == "stderr" && column.at(row).as_bool()) text = "E:" + text;
      }
      auto& line = lines[group.step[row]];
      if (group.sequence[row] >= line.first) line = {group.sequence[row], text};
    }
  }
  EXPECT_TRUE(file.damage().empty());
  std::map<std::int64_t, std::string> texts;
  for (const auto& [number, line] : lines) texts[number] = line.second;
  return texts;
}

std::set<std::string> system_keys(const std::filesystem::path& path) {
  const auto file = RankFile::open(path);
  std::set<std::string> keys;
  for (const auto& group : file.row_groups(Stream::kSystem)) {
    for (const auto& series : group.series) keys.insert(file.keys().at(series.key).names.at(0));
  }
  return keys;
}

// A program that logs with its output going to a file, and whose relay has ended when that is whole.
class Program {
 public:
  explicit Program(const std::function<int(const std::filesystem::path& logs)>& body) {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    test::Child child([&] {
      ::dup2(fds[1], 1);
      ::dup2(fds[1], 2);
      ::close(fds[0]);
      ::close(fds[1]);
      return body(dir_.path());
    });
    ::close(fds[1]);
    char block[4096];
    for (ssize_t got = 0; (got = ::read(fds[0], block, sizeof block)) > 0;)
      output_.append(block, static_cast<std::size_t>(got));
    ::close(fds[0]);
    status_ = child.wait();
  }
  [[nodiscard]] const std::string& output() const { return output_; }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] std::filesystem::path file() const { return folder() / "rank-00000.db"; }
  [[nodiscard]] std::filesystem::path folder() const { return dir_ / "project/job"; }

 private:
  test::TempDir dir_;
  std::string output_;
  int status_ = 0;
};

Options capturing(const std::filesystem::path& folder) {
  auto options = test::options_in(folder);
  options.console = true;
  return options;
}

using Lines = std::map<std::int64_t, std::string>;

class ProbesTest : public testing::Test {
 protected:
  test::ScopedEnvironment environment_{{}};
};

TEST_F(ProbesTest, TheConsoleOfAFinishedLogStandsInItsDatabase) {
  const Program program([](const auto& logs) {
    auto log = Writer::open(capturing(logs));
    std::printf("one\n\r 50%%\r100%%\n");
    log.log(0, {{"loss", 1.0}});
    const bool durable = log.finish().durable;
    std::printf("after the end\n");
    std::fflush(stdout);
    return durable ? 0 : 1;
  });
  EXPECT_EQ(program.status(), 0);
  EXPECT_EQ(program.output(), "one\n\r 50%\r100%\nafter the end\n");
  EXPECT_EQ(read_console(program.file()), (Lines{{0, "one"}, {1, "100%"}}));
  EXPECT_EQ(test::read_rows(program.file()).size(), 1U) << "lines are no history";
  EXPECT_EQ(test::list_folder(program.folder()),
            (std::vector<std::string>{"experiment.json", "rank-00000.db"}));
}

TEST_F(ProbesTest, WhatADyingProgramPrintedLastIsInItsLog) {
  for (const int signal : {SIGKILL, SIGABRT, SIGSEGV}) {
    const Program program([&](const auto& logs) {
      auto log = Writer::open(capturing(logs));
      log.log(0, {{"loss", 1.0}, {"text", "a key of that name"}});
      std::printf("first\n");
      std::fflush(stdout);
      log.log(1, {{"loss", 2.0}});
      std::printf("last words");
      std::fflush(stdout);
      std::signal(signal, SIG_DFL);
      ::raise(signal);
      return 0;
    });
    EXPECT_EQ(program.status(), 128 + signal);
    EXPECT_EQ(program.output(), "first\nlast words");
    EXPECT_EQ(read_console(program.file()), (Lines{{0, "first"}, {1, "last words"}}));
    EXPECT_EQ(test::read_rows(program.file()).size(), 2U);
  }
}

TEST_F(ProbesTest, AProgramThatExitsWithoutFinishKeepsItsConsole) {
  const Program program([](const auto& logs) {
    static auto log = std::make_unique<Writer>(Writer::open(capturing(logs)));
    std::printf("printed\n");
    std::fflush(stdout);
    return 3;  // by _exit
  });
  EXPECT_EQ(program.status(), 3);
  EXPECT_EQ(read_console(program.file()), (Lines{{0, "printed"}}));
}

TEST_F(ProbesTest, FlushedLinesAreInTheLog) {
  const Program program([](const auto& logs) {
    auto log = Writer::open(capturing(logs));
    std::printf("printed");
    const bool durable = log.flush().durable;
    const bool found = read_console(log.path()) == Lines{{0, "printed"}};
    return durable && found ? 0 : 1;
  });
  EXPECT_EQ(program.status(), 0);
}

TEST_F(ProbesTest, ASecondLogOfAProcessSaysOnceThatItRecordsNoConsole) {
  const Program program([](const auto& logs) {
    auto first = Writer::open(capturing(logs));
    for (int i = 0; i < 2; ++i) {
      auto options = capturing(logs);
      options.experiment = "other" + std::to_string(i);
      auto other = Writer::open(options);
      if (other.log(0, {{"loss", 1.0}}) != LogStatus::kOk || !other.finish().durable) return 1;
    }
    std::printf("printed\n");
    return first.finish().durable ? 0 : 1;
  });
  EXPECT_EQ(program.status(), 0);
  const std::string message = "another log of this process records the console already";
  const auto at = program.output().find(message);
  ASSERT_NE(at, std::string::npos) << program.output();
  EXPECT_EQ(program.output().find(message, at + 1), std::string::npos);
  EXPECT_NE(program.output().find("printed"), std::string::npos);
}

TEST_F(ProbesTest, TheConsoleIsLeftAloneWhenTurnedOff) {
  ::setenv("RANKLOG_CONSOLE", "off", 1);
  const Program program([](const auto& logs) {
    auto options = capturing(logs);
    options.console.reset();
    auto log = Writer::open(options);
    std::printf("printed\n");
    std::fflush(stdout);
    return log.finish().durable ? 0 : 1;
  });
  EXPECT_EQ(program.output(), "printed\n");
  EXPECT_EQ(read_console(program.file()), Lines());
  ::setenv("RANKLOG_CONSOLE", "perhaps", 1);
  const test::TempDir dir;
  auto options = test::options_in(dir.path());
  options.console.reset();
  EXPECT_THROW(Writer::open(options), Error);
}

TEST_F(ProbesTest, WithoutTheRelayProgramLoggingGoesOnAndALineSaysWhy) {
  ::setenv("RANKLOG_CONSOLE_RELAY", "/nowhere/ranklog-console", 1);
  const Program program([](const auto& logs) {
    auto log = Writer::open(capturing(logs));
    return log.log(0, {{"loss", 1.0}}) == LogStatus::kOk && log.finish().durable ? 0 : 1;
  });
  EXPECT_EQ(program.status(), 0);
  EXPECT_NE(program.output().find("/nowhere/ranklog-console"), std::string::npos) << program.output();
}

// Until the first sample is there.
std::set<std::string> log_metrics_of(int local_rank) {
  const test::TempDir dir;
  auto options = test::options_in(dir.path());
  options.world_size = options.local_world_size = 2;
  options.rank = options.local_rank = local_rank;
  options.system_metrics_interval = 100ms;
  auto log = Writer::open(options);
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (RankFile::open(log.path()).row_groups(Stream::kSystem).empty() &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(log.finish().durable);
  EXPECT_TRUE(test::read_rows(log.path()).empty()) << "metrics are no history";
  return system_keys(log.path());
}

TEST_F(ProbesTest, MetricsOfTheNodeAreRecordedByItsLocalRank0Alone) {
  ::setenv("RANKLOG_NVML", "off", 1);
  const auto of_first = log_metrics_of(0);
  const auto of_second = log_metrics_of(1);
  for (const char* key : {"cpu", "proc.cpu.threads", "proc.memory.rssMB"}) {
    EXPECT_TRUE(of_first.contains(key)) << key;
    EXPECT_TRUE(of_second.contains(key)) << key;
  }
  for (const char* key : {"memory_percent", "proc.memory.availableMB"}) {
    EXPECT_TRUE(of_first.contains(key)) << key;
    EXPECT_FALSE(of_second.contains(key)) << key;
  }
}

TEST_F(ProbesTest, AGpuThatHangsHoldsUpNeitherLogNorFinish) {
  ::setenv("RANKLOG_NVML", FAKE_NVML, 1);
  ::setenv("RANKLOG_FAKE_NVML", "hang", 1);
  const test::TempDir dir;
  auto options = test::options_in(dir.path());
  options.system_metrics_interval = 100ms;
  const auto start = std::chrono::steady_clock::now();
  {
    auto log = Writer::open(options);
    EXPECT_EQ(log.log(0, {{"loss", 1.0}}), LogStatus::kOk);
    std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(log.finish().durable);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  ::unsetenv("RANKLOG_FAKE_NVML");
}

TEST_F(ProbesTest, SystemMetricsCanBeTurnedOff) {
  const test::TempDir dir;
  auto log = Writer::open(test::options_in(dir.path()));
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(log.finish().durable);
  EXPECT_TRUE(system_keys(log.path()).empty());
}

}  // namespace
}  // namespace ranklog
