// The numbers of a machine that stands in a folder.

#include "host_metrics.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>

#include "support/temp_dir.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

using Numbers = std::map<std::string, double>;

// Two cores with two threads each, 1,000 MB of memory, up for 100 s.
class FakeMachine {
 public:
  FakeMachine() {
    write("proc/cpuinfo",
          "processor : 0\nphysical id : 0\ncore id : 0\n\nprocessor : 1\nphysical id : 0\ncore id : 1\n\n"
          "processor : 2\nphysical id : 0\ncore id : 0\n\nprocessor : 3\nphysical id : 0\ncore id : 1\n");
    write("proc/self/status", "Cpus_allowed_list:\t0-3\n");
    write("proc/self/cgroup", "0::/\n");
    mount("");
    set_memory(1000, 250);
    set_process(0, 0, 1, 0);
    set_uptime("100.00");
    set_network(0, 0);
    set_disk(0, 0);
  }

  void write(const fs::path& name, std::string_view text) const {
    fs::create_directories((dir_ / name).parent_path());
    test::write_file(dir_ / name, text);
  }
  void mount(const std::string& more) const {
    write("proc/self/mountinfo", "27 1 254:0 / / rw - ext4 /dev/vda rw\n" + more);
  }
  void set_memory(int total_mb, int available_mb) const {
    write("proc/meminfo", "MemTotal: " + std::to_string(total_mb * 1024) +
                              " kB\nMemAvailable: " + std::to_string(available_mb * 1024) + " kB\n");
  }
  void set_process(long cpu_s, long start_s, int threads, int rss_mb) const {
    const long ticks = ::sysconf(_SC_CLK_TCK);
    const long pages = rss_mb * (1024L * 1024 / ::sysconf(_SC_PAGESIZE));
    write("proc/self/stat", "1 (train) R 1 1 1 0 1 0 0 0 0 0 " + std::to_string(cpu_s * ticks) +
                                " 0 0 0 20 0 " + std::to_string(threads) + " 0 " +
                                std::to_string(start_s * ticks) + " 0 " + std::to_string(pages) + " 0\n");
  }
  void set_uptime(const std::string& seconds) const { write("proc/uptime", seconds + " 1.00\n"); }
  void set_network(long received, long sent) const {
    write("proc/net/dev", "lo: 5 0 0 0 0 0 0 0 5\neth0: " + std::to_string(received) + " 0 0 0 0 0 0 0 " +
                              std::to_string(sent) + " 0\n");
  }
  void set_disk(long read_mb, long written_mb) const {
    write("proc/diskstats", "254 0 vda 1 0 " + std::to_string(read_mb * 2048) + " 0 1 0 " +
                                std::to_string(written_mb * 2048) + " 0 0 0 0\n");
  }

  [[nodiscard]] HostMetrics metrics(HostScope scope = HostScope::kNode) const {
    return HostMetrics(scope, dir_.path(), dir_.path());
  }

 private:
  test::TempDir dir_;
};

Numbers numbers(HostMetrics& metrics) {
  Numbers found;
  const auto row = metrics.sample();
  for (const auto& metric : row.value()) found[metric.key] = metric.value;
  return found;
}

TEST(HostMetrics, CpuIsTheShareOfTheCoresSinceTheLastSample) {
  const FakeMachine machine;
  machine.set_process(30, 40, 5, 100);  // 30 s of CPU time in the 60 s since it started, on 2 cores
  auto metrics = machine.metrics();
  EXPECT_DOUBLE_EQ(numbers(metrics).at("cpu"), 25);
  machine.set_process(45, 40, 5, 100);
  machine.set_uptime("115.00");
  EXPECT_DOUBLE_EQ(numbers(metrics).at("cpu"), 50);
  EXPECT_FALSE(numbers(metrics).contains("cpu")) << "no time has passed";
}

TEST(HostMetrics, MemoryAndThreadsOfTheProcess) {
  const FakeMachine machine;
  machine.set_process(1, 1, 37, 125);
  auto metrics = machine.metrics();
  const auto found = numbers(metrics);
  EXPECT_DOUBLE_EQ(found.at("proc.cpu.threads"), 37);
  EXPECT_DOUBLE_EQ(found.at("proc.memory.rssMB"), 125);
  EXPECT_DOUBLE_EQ(found.at("proc.memory.percent"), 12.5);
  EXPECT_DOUBLE_EQ(found.at("memory_percent"), 75);
  EXPECT_DOUBLE_EQ(found.at("proc.memory.availableMB"), 250);
}

TEST(HostMetrics, NetworkAndDiskCountFromTheFirstSample) {
  const FakeMachine machine;
  machine.set_network(1000, 2000);
  machine.set_disk(10, 20);
  auto metrics = machine.metrics();
  auto found = numbers(metrics);
  EXPECT_DOUBLE_EQ(found.at("network.recv"), 0);
  EXPECT_DOUBLE_EQ(found.at("disk.vda.out"), 0);
  machine.set_network(1500, 2001);
  machine.set_disk(11, 23);
  found = numbers(metrics);
  EXPECT_DOUBLE_EQ(found.at("network.recv"), 500);
  EXPECT_DOUBLE_EQ(found.at("network.sent"), 1);
  EXPECT_DOUBLE_EQ(found.at("disk.vda.in"), 1);
  EXPECT_DOUBLE_EQ(found.at("disk.vda.out"), 3);
}

TEST(HostMetrics, DiskUsageIsThatOfTheLogsFileSystem) {
  const FakeMachine machine;
  auto metrics = machine.metrics();
  const auto found = numbers(metrics);
  EXPECT_GT(found.at("disk./.usagePercent"), 0);
  EXPECT_LE(found.at("disk./.usagePercent"), 100);
  EXPECT_GT(found.at("disk./.usageGB"), 0);
}

TEST(HostMetrics, ControlGroupsOfVersion2StandForTheMachine) {
  const FakeMachine machine;
  machine.mount("31 27 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  machine.write("proc/self/cgroup", "0::/job/step/task\n");
  machine.write("sys/fs/cgroup/job/step/task/memory.max", "max\n");
  machine.write("sys/fs/cgroup/job/step/task/cpu.max", "max 100000\n");
  machine.write("sys/fs/cgroup/job/memory.max",
                std::to_string(400 << 20) + "\n");  // the job's, not the task's
  machine.write("sys/fs/cgroup/job/memory.current", std::to_string(100 << 20) + "\n");
  machine.write("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  machine.set_process(15, 40, 1, 100);  // 15 s of half a CPU's 30 s
  auto metrics = machine.metrics();
  const auto found = numbers(metrics);
  EXPECT_DOUBLE_EQ(found.at("cpu"), 50);
  EXPECT_DOUBLE_EQ(found.at("memory_percent"), 25);
  EXPECT_DOUBLE_EQ(found.at("proc.memory.availableMB"), 300);
  EXPECT_DOUBLE_EQ(found.at("proc.memory.percent"), 25);
}

TEST(HostMetrics, ControlGroupsOfVersion1StandForTheMachineInAContainer) {
  const FakeMachine machine;
  machine.mount(
      "32 27 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "33 27 0:30 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  machine.write("proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(500 << 20) + "\n");
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(50 << 20) + "\n");
  machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n");
  machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  machine.set_process(30, 40, 1, 100);
  auto metrics = machine.metrics();
  const auto found = numbers(metrics);
  EXPECT_DOUBLE_EQ(found.at("cpu"), 50);
  EXPECT_DOUBLE_EQ(found.at("memory_percent"), 10);
}

TEST(HostMetrics, ALimitAboveTheMachineIsNone) {
  const FakeMachine machine;
  machine.mount("33 27 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  machine.write("proc/self/cgroup", "5:memory:/\n");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
  auto metrics = machine.metrics();
  EXPECT_DOUBLE_EQ(numbers(metrics).at("memory_percent"), 75);
}

TEST(HostMetrics, ProcessorsThatMayNotBeUsedDoNotCount) {
  const FakeMachine machine;
  machine.write("proc/self/status", "Cpus_allowed_list:\t2\n");
  machine.set_process(30, 40, 1, 100);
  auto metrics = machine.metrics();
  EXPECT_DOUBLE_EQ(numbers(metrics).at("cpu"), 50);
}

TEST(HostMetrics, OtherRanksLeaveTheNodeOut) {
  const FakeMachine machine;
  machine.set_process(30, 40, 5, 100);
  auto metrics = machine.metrics(HostScope::kProcess);
  Numbers expected{
      {"cpu", 25}, {"proc.cpu.threads", 5}, {"proc.memory.rssMB", 100}, {"proc.memory.percent", 10}};
  EXPECT_EQ(numbers(metrics), expected);
}

TEST(HostMetrics, WithoutProcThereIsNothingButTheProgramGoesOn) {
  const test::TempDir empty;
  HostMetrics metrics(HostScope::kNode, empty.path(), empty.path());
  EXPECT_EQ(numbers(metrics), Numbers());
}

TEST(HostMetrics, ThisMachineHasThemAll) {
  const test::TempDir dir;
  HostMetrics metrics(HostScope::kNode, dir.path());
  static_cast<void>(metrics.sample());
  // The system counts in hundredths of a second; this process may be younger than one.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto found = numbers(metrics);
  for (const char* key : {"cpu", "proc.cpu.threads", "proc.memory.rssMB", "proc.memory.percent",
                          "memory_percent", "proc.memory.availableMB"}) {
    ASSERT_TRUE(found.contains(key)) << key;
    EXPECT_GE(found.at(key), 0) << key;
  }
  EXPECT_LE(found.at("memory_percent"), 100);
  EXPECT_GE(found.at("proc.cpu.threads"), 1);
}

}  // namespace
}  // namespace ranklog::writer
