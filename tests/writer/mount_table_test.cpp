// The mount table, from samples as kernels write them.

#include "mount_table.hpp"

#include <gtest/gtest.h>

namespace ranklog::writer {
namespace {

constexpr std::string_view kLaptop =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n"
    "30 27 0:27 / /dev/shm rw,relatime shared:4 - tmpfs tmpfs rw,size=24683656k\n"
    "61 27 8:17 / /scratch rw,noatime shared:29 master:3 propagate_from:2 - xfs /dev/sdb1 "
    "rw,attr2,inode64,logbufs=8,noquota\n"
    "71 61 8:17 /team/alice /home/alice/scratch rw,noatime - xfs /dev/sdb1 rw,attr2\n"
    "83 27 0:52 / /mnt/my\\040data\\134x rw,nosuid,nodev - fuse.sshfs alice@login:/data "
    "rw,user_id=1000,group_id=1000\n"
    "84 27 0:53 / /data rw - nfs4 filer:/vol/data rw,vers=4.2,addr=10.0.0.1\n"
    "99 84 0:60 / /data/local rw - btrfs /dev/nvme0n1p2 rw,ssd,subvol=/@data\n";

std::string type_at(std::string_view table, const char* path) {
  const auto mounts = parse_mount_table(table);
  const Mount* mount = find_mount(mounts, path);
  return mount != nullptr ? mount->type : "none";
}

TEST(MountTable, TheLongestMountPointAboveAPathHoldsIt) {
  EXPECT_EQ(type_at(kLaptop, "/"), "ext4");
  EXPECT_EQ(type_at(kLaptop, "/home/bob/logs"), "ext4");
  EXPECT_EQ(type_at(kLaptop, "/dev/shm/ranklog"), "tmpfs");
  EXPECT_EQ(type_at(kLaptop, "/scratch"), "xfs");
  EXPECT_EQ(type_at(kLaptop, "/data/x"), "nfs4");
  EXPECT_EQ(type_at(kLaptop, "/data/local/x"), "btrfs");
}

TEST(MountTable, AMountPointEndsAtASlash) {
  EXPECT_EQ(type_at(kLaptop, "/scratch2/x"), "ext4");
  EXPECT_EQ(type_at(kLaptop, "/database"), "ext4");
}

TEST(MountTable, ABindMountIsFoundAtItsOwnPlace) {
  EXPECT_EQ(type_at(kLaptop, "/home/alice/scratch/run"), "xfs");
  EXPECT_EQ(type_at(kLaptop, "/home/alice"), "ext4");
}

TEST(MountTable, OctalEscapesInNamesAreUndone) {
  EXPECT_EQ(type_at(kLaptop, "/mnt/my data\\x/ranklog"), "fuse.sshfs");
  const auto mounts = parse_mount_table(R"(9 1 0:1 / /a\011b\012c\1 rw - tmpfs t\040t rw)");
  ASSERT_EQ(mounts.size(), 1U);
  EXPECT_EQ(mounts[0].mount_point, "/a\tb\nc\\1");
  EXPECT_EQ(mounts[0].source, "t t");
}

TEST(MountTable, OfTwoMountsOnOnePlaceTheLastCounts) {
  constexpr std::string_view kTwice =
      "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "2 1 0:30 / /logs rw - nfs filer:/old rw\n"
      "3 2 0:31 / /logs rw - tmpfs tmpfs rw\n";
  EXPECT_EQ(type_at(kTwice, "/logs/run"), "tmpfs");
}

// A later mount on /a hides what was mounted on /a/b: only the kernel's number tells.
TEST(MountTable, TheKernelsNumberOverridesTheName) {
  constexpr std::string_view kHidden =
      "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "2 1 0:30 / /a/b rw - nfs filer:/old rw\n"
      "3 1 0:31 / /a rw - tmpfs tmpfs rw\n";
  const auto mounts = parse_mount_table(kHidden);
  EXPECT_EQ(find_mount(mounts, "/a/b/run")->type, "nfs");
  EXPECT_EQ(find_mount(mounts, "/a/b/run", 3)->type, "tmpfs");
  EXPECT_EQ(find_mount(mounts, "/a/b/run", 77)->type, "nfs") << "an unknown number says nothing";
}

TEST(MountTable, LinesThatAreNoneAreLeftOut) {
  constexpr std::string_view kBroken =
      "\n"
      "22 27 0:21 / /proc rw\n"
      "x 27 0:21 / /proc rw - proc proc rw\n"
      "22 27 0:21 / /proc rw -\n"
      "22 27 0:21 / /proc rw shared:1 - proc\n"
      "1 0 8:1 / / rw - ext4 /dev/sda1";
  const auto mounts = parse_mount_table(kBroken);
  ASSERT_EQ(mounts.size(), 1U);
  EXPECT_EQ(mounts[0].type, "ext4");
  EXPECT_EQ(find_mount(mounts, "relative"), nullptr);
  EXPECT_EQ(find_mount({}, "/"), nullptr);
}

TEST(MountTable, OptionsAreFoundByName) {
  const auto mounts = parse_mount_table(
      "7 1 0:33 / / rw - overlay overlay rw,lowerdir=/l/1:/l/2,upperdir=/u\\040p/diff,workdir=/w");
  ASSERT_EQ(mounts.size(), 1U);
  EXPECT_EQ(mount_option(mounts[0], "upperdir"), "/u p/diff");
  EXPECT_EQ(mount_option(mounts[0], "workdir"), "/w");
  EXPECT_EQ(mount_option(mounts[0], "dir"), "");
  EXPECT_EQ(mount_option(mounts[0], "rw"), "");
}

}  // namespace
}  // namespace ranklog::writer
