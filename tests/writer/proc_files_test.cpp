// What is understood of /proc: texts as Linux writes them.

#include "proc_files.hpp"

#include <gtest/gtest.h>

namespace ranklog::writer {
namespace {

TEST(ProcFiles, StatIsReadBehindANameWithBlanksAndBrackets) {
  const auto stat = parse_process_stat(
      "4242 (py) train (x) R 1 4242 4242 34816 4242 4194304 901 0 3 0 1500 250 7 9 20 0 37 0 123456 9000000 "
      "25600 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->cpu_ticks, 1750U);
  EXPECT_EQ(stat->threads, 37U);
  EXPECT_EQ(stat->start_ticks, 123456U);
  EXPECT_EQ(stat->rss_pages, 25600U);
  EXPECT_FALSE(parse_process_stat("4242 (python) R 1 2"));
  EXPECT_FALSE(parse_process_stat(""));
}

TEST(ProcFiles, MemoryIsReadInBytesAndGuessedOnOldKernels) {
  const auto memory = parse_meminfo(
      "MemTotal:       24683656 kB\nMemFree:        21895296 kB\nMemAvailable:   22743680 kB\n"
      "Buffers:            9864 kB\nCached:          1006296 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total, 24683656ULL * 1024);
  EXPECT_EQ(memory->available, 22743680ULL * 1024);

  const auto old = parse_meminfo("MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 10 kB\nCached: 1 kB\n");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->available, 111U * 1024);
  EXPECT_FALSE(parse_meminfo("MemFree: 1 kB\n"));
}

TEST(ProcFiles, NetworkBytesAreThoseOfAllInterfacesButTheLoopback) {
  const auto bytes = parse_net_dev(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo "
      "colls\n"
      "    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     "
      "0\n"
      "  eth0: 139962914    3158    0    0    0     0          0         0   116658    1619    0    0    0   "
      "  0\n"
      "   ib0:1000 1 0 0 0 0 0 0 2000 2 0 0 0 0 0 0\n");  // old kernels leave no blank behind the colon
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->received, 139963914U);
  EXPECT_EQ(bytes->sent, 118658U);
  EXPECT_FALSE(parse_net_dev("    lo: 1 2 3 4 5 6 7 8 9\n"));
}

TEST(ProcFiles, ADiskIsFoundByItsNumber) {
  constexpr std::string_view kTable =
      "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
      " 259       0 nvme0n1 100 0 2000 30 200 0 4000 50 0 60 80\n"
      " 259       1 nvme0n1p1 50 0 1000 30 100 0 2048 50 0 60 80\n";
  const auto disk = find_disk(kTable, "259:1");
  ASSERT_TRUE(disk);
  EXPECT_EQ(disk->device, "nvme0n1p1");
  EXPECT_EQ(disk->read, 512000U);
  EXPECT_EQ(disk->written, 1048576U);
  EXPECT_FALSE(find_disk(kTable, "0:45"));
}

TEST(ProcFiles, TheMountOfAPathIsTheDeepestAndOfEqualOnesTheLast) {
  const auto mounts = parse_mountinfo(
      "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
      "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n"
      "40 27 0:40 /home/me /data\\040of\\040me rw,nosuid shared:7 master:2 - nfs4 server:/export "
      "rw,vers=4.2\n"
      "41 27 8:17 / /scratch rw - xfs /dev/sdb1 rw\n"
      "42 27 8:33 / /scratch rw - ext4 /dev/sdc1 rw\n"
      "cut off\n");
  ASSERT_EQ(mounts.size(), 5U);
  EXPECT_EQ(find_mount(mounts, "/data of me/logs")->type, "nfs4");
  EXPECT_EQ(find_mount(mounts, "/data of me/logs")->root, "/home/me");
  EXPECT_EQ(find_mount(mounts, "/data of mean")->path, "/");
  EXPECT_EQ(find_mount(mounts, "/scratch/x")->device_number, "8:33");
  EXPECT_FALSE(find_mount(mounts, "relative"));
}

TEST(ProcFiles, CoresAreCountedOnceAndProcessorsWhereThereIsNoTelling) {
  constexpr std::string_view kTwoSocketsOfTwoCoresWithTwoThreads =
      "processor\t: 0\nphysical id\t: 0\ncore id\t\t: 0\n\nprocessor\t: 1\nphysical id\t: 0\ncore id\t\t: "
      "1\n\n"
      "processor\t: 2\nphysical id\t: 1\ncore id\t\t: 0\n\nprocessor\t: 3\nphysical id\t: 1\ncore id\t\t: "
      "1\n\n"
      "processor\t: 4\nphysical id\t: 0\ncore id\t\t: 0\n\nprocessor\t: 5\nphysical id\t: 0\ncore id\t\t: "
      "1\n\n"
      "processor\t: 6\nphysical id\t: 1\ncore id\t\t: 0\n\nprocessor\t: 7\nphysical id\t: 1\ncore id\t\t: "
      "1\n";
  EXPECT_EQ(count_processors(kTwoSocketsOfTwoCoresWithTwoThreads), 8);
  EXPECT_EQ(count_physical_cores(kTwoSocketsOfTwoCoresWithTwoThreads), 4);
  constexpr std::string_view kArm =
      "processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 1\nBogoMIPS\t: 50.00\n";
  EXPECT_EQ(count_physical_cores(kArm), 2);
}

TEST(ProcFiles, AllowedCpusAreCountedInRanges) {
  EXPECT_EQ(count_allowed_cpus("Cpus_allowed:\tff\nCpus_allowed_list:\t0-3,8,10-11\n"), 7);
  EXPECT_EQ(count_allowed_cpus("Cpus_allowed_list:\t5\n"), 1);
  EXPECT_EQ(count_allowed_cpus("Name:\tx\n"), 0);
}

}  // namespace
}  // namespace ranklog::writer
