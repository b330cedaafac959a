// Which file system gets which way of writing, from recorded samples; and what a user may force.

#include "file_system.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "fake_environment.hpp"
#include "ranklog/schema/error.hpp"
#include "write_mode.hpp"

namespace ranklog::writer {
namespace {

using namespace std::chrono_literals;

FileSystemSample sample_of(unsigned long magic, std::string type, std::string options = {}) {
  FileSystemSample sample;
  sample.magic = magic;
  auto& mount = sample.mount.emplace();
  mount.type = std::move(type);
  mount.options = std::move(options);
  return sample;
}

struct Expected {
  unsigned long magic;
  const char* type;
  bool network;
  TailMode tail;
  JournalMode journal;
};

class KnownFileSystem : public ::testing::TestWithParam<Expected> {};

TEST_P(KnownFileSystem, IsWrittenInAModeThatIsSafeThere) {
  const auto& expected = GetParam();
  const auto facts = describe_file_system(sample_of(expected.magic, expected.type));
  EXPECT_EQ(facts.name, expected.type);
  EXPECT_EQ(facts.network, expected.network);
  EXPECT_EQ(facts.tail, expected.tail);
  EXPECT_EQ(facts.journal, expected.journal);
  EXPECT_NE(facts.reason, "");
}

constexpr auto kMapped = TailMode::kMapped;
constexpr auto kAppend = TailMode::kAppend;
constexpr auto kWal = JournalMode::kWal;
constexpr auto kPersist = JournalMode::kPersist;

INSTANTIATE_TEST_SUITE_P(Table, KnownFileSystem,
                         ::testing::Values(Expected{0xEF53, "ext4", false, kMapped, kWal},
                                           Expected{0xEF53, "ext3", false, kAppend, kWal},
                                           Expected{0x58465342, "xfs", false, kMapped, kWal},
                                           Expected{0x01021994, "tmpfs", false, kMapped, kWal},
                                           Expected{0x9123683E, "btrfs", false, kAppend, kWal},
                                           Expected{0x2FC12FC1, "zfs", false, kAppend, kWal},
                                           Expected{0x65735546, "fuse.sshfs", true, kAppend, kPersist},
                                           Expected{0x65735546, "fuse.gocryptfs", true, kAppend, kPersist},
                                           Expected{0x65735546, "fuse.s3fs", true, kAppend, kPersist},
                                           Expected{0x65735546, "fuse", true, kAppend, kPersist},
                                           Expected{0x65735546, "fuseblk", true, kAppend, kPersist},
                                           Expected{0x65735546, "virtiofs", true, kAppend, kPersist},
                                           Expected{0x01021997, "9p", true, kAppend, kPersist},
                                           Expected{0x6969, "nfs", true, kAppend, kPersist},
                                           Expected{0x6969, "nfs4", true, kAppend, kPersist},
                                           Expected{0x0BD00BD0, "lustre", true, kAppend, kPersist},
                                           Expected{0x47504653, "gpfs", true, kAppend, kPersist},
                                           Expected{0x19830326, "beegfs", true, kAppend, kPersist},
                                           Expected{0x18031977, "wekafs", true, kAppend, kPersist},
                                           Expected{0x00C36400, "ceph", true, kAppend, kPersist},
                                           Expected{0xFF534D42, "cifs", true, kAppend, kPersist},
                                           Expected{0xFE534D42, "smb3", true, kAppend, kPersist}));

TEST(FileSystem, IsToldByItsMagicWhereThereIsNoMountTable) {
  FileSystemSample sample;
  sample.magic = 0x6969;
  EXPECT_EQ(describe_file_system(sample).name, "nfs");
  // Where long has a sign, a 32-bit magic comes with its sign spread.
  sample.magic = static_cast<unsigned long>(static_cast<long>(static_cast<std::int32_t>(0xFF534D42)));
  EXPECT_EQ(describe_file_system(sample).name, "cifs");
}

TEST(FileSystem, AMountTableThatContradictsTheKernelIsNotBelieved) {
  const auto facts = describe_file_system(sample_of(0x6969, "ext4"));
  EXPECT_EQ(facts.name, "nfs");
  EXPECT_EQ(facts.tail, TailMode::kAppend);
}

TEST(FileSystem, AnUnknownOneIsWrittenInTheWayThatIsRightEverywhere) {
  for (const auto& sample : {sample_of(0x1234, "quobyte"), FileSystemSample{}}) {
    const auto facts = describe_file_system(sample);
    EXPECT_TRUE(facts.network);
    EXPECT_EQ(facts.tail, TailMode::kAppend);
    EXPECT_EQ(facts.journal, JournalMode::kPersist);
  }
  EXPECT_EQ(describe_file_system(sample_of(0x1234, "quobyte")).name, "quobyte");
}

TEST(FileSystem, AnOverlayIsWhatItsUpperLayerIs) {
  auto sample = sample_of(0x794C7630, "overlay");
  EXPECT_EQ(describe_file_system(sample).name, "overlay");
  EXPECT_EQ(describe_file_system(sample).tail, TailMode::kAppend) << "nothing is known of the upper layer";
  EXPECT_EQ(describe_file_system(sample).journal, JournalMode::kWal);
  sample.upper_magic = 0xEF53;
  sample.upper_type = "ext4";
  EXPECT_EQ(describe_file_system(sample).name, "overlay on ext4");
  EXPECT_EQ(describe_file_system(sample).tail, TailMode::kMapped);
  sample.upper_magic = 0x9123683E;
  sample.upper_type = "btrfs";
  EXPECT_EQ(describe_file_system(sample).tail, TailMode::kAppend);
  sample.upper_magic = 0x65735546;
  sample.upper_type = "fuse.x";
  EXPECT_EQ(describe_file_system(sample).journal, JournalMode::kPersist);
}

TEST(FileSystem, RealFoldersAreDetected) {
  if (std::filesystem::exists("/dev/shm")) {
    EXPECT_EQ(detect_file_system("/dev/shm").name, "tmpfs");
  }
  EXPECT_EQ(detect_file_system("/proc").name, "proc");
  EXPECT_EQ(detect_file_system("/proc").tail, TailMode::kAppend) << "in doubt";
  EXPECT_EQ(detect_file_system("/nowhere").tail, TailMode::kAppend);
}

class WriteModeTest : public ::testing::Test {
 protected:
  WriteMode choose(const std::map<std::string, std::string>& variables, double jitter = 0) {
    return choose_write_mode("/proc", options_, test::fake_environment(variables), jitter);
  }
  void expect_refused(const std::map<std::string, std::string>& variables, const std::string& part) {
    try {
      (void)choose(variables);
      FAIL() << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  Options options_;
};

TEST_F(WriteModeTest, VariablesForceIt) {
  const auto mode = choose({{"RANKLOG_FILE_SYSTEM", "ext4"}});
  EXPECT_EQ(mode.tail, TailMode::kMapped);
  EXPECT_EQ(mode.journal, JournalMode::kWal);
  EXPECT_EQ(mode.file_system, "ext4");
  const auto forced =
      choose({{"RANKLOG_FILE_SYSTEM", "ext4"}, {"RANKLOG_TAIL", "append"}, {"RANKLOG_JOURNAL", "truncate"}});
  EXPECT_EQ(forced.tail, TailMode::kAppend);
  EXPECT_EQ(forced.journal, JournalMode::kTruncate);
  EXPECT_NE(forced.reason.find("RANKLOG_JOURNAL=truncate"), std::string::npos) << forced.reason;
}

TEST_F(WriteModeTest, OptionsGoBeforeVariables) {
  options_.tail = "mapped";
  options_.journal = "persist";
  const auto mode = choose({{"RANKLOG_TAIL", "append"}, {"RANKLOG_JOURNAL", "wal"}});
  EXPECT_EQ(mode.tail, TailMode::kMapped);
  EXPECT_EQ(mode.journal, JournalMode::kPersist);
}

TEST_F(WriteModeTest, WordsThatAreNotUnderstoodAreRefusedByName) {
  expect_refused({{"RANKLOG_TAIL", "ring"}}, "RANKLOG_TAIL=ring");
  expect_refused({{"RANKLOG_JOURNAL", "off"}}, "RANKLOG_JOURNAL=off");
  options_.journal = "memory";
  expect_refused({}, "Options::journal=memory");
}

TEST_F(WriteModeTest, SharedFileSystemsAreSyncedSeldomAndNotByAllRanksAtOnce) {
  const auto local = choose({{"RANKLOG_FILE_SYSTEM", "xfs"}}, 1);
  EXPECT_EQ(local.sync_interval, 1s);
  EXPECT_EQ(local.seal_interval, 30s);
  const auto first = choose({{"RANKLOG_FILE_SYSTEM", "nfs"}}, 0);
  const auto other = choose({{"RANKLOG_FILE_SYSTEM", "nfs"}}, 0.5);
  const auto last = choose({{"RANKLOG_FILE_SYSTEM", "nfs"}}, 1);
  EXPECT_EQ(first.sync_interval, 10s);
  EXPECT_EQ(other.sync_interval, 7500ms);
  EXPECT_EQ(last.sync_interval, 5s);
  EXPECT_LT(first.heartbeat, 10min) << "readers would take it for dead";
  EXPECT_LT(other.heartbeat, first.heartbeat);
}

TEST_F(WriteModeTest, IntervalsThatTheUserSetsStay) {
  options_.sync_interval = 3s;
  options_.seal_interval = 4s;
  const auto mode = choose({{"RANKLOG_FILE_SYSTEM", "lustre"}}, 0.7);
  EXPECT_EQ(mode.sync_interval, 3s);
  EXPECT_EQ(mode.seal_interval, 4s);
}

}  // namespace
}  // namespace ranklog::writer
