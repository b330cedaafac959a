#include "tail_files.hpp"

#include <gtest/gtest.h>

#include "ranklog/schema/naming.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

class TailFilesTest : public testing::Test {
 protected:
  void make_segments(std::initializer_list<unsigned> indices) {
    for (const unsigned index : indices) test::write_file(tail_segment_path(file_, index), "");
  }
  std::vector<unsigned> opened(const std::vector<std::string>& names) {
    std::vector<unsigned> indices;
    for (const TailSegment& segment : open_tail_segments(file_, names)) indices.push_back(segment.index);
    return indices;
  }

  test::TempDir dir_;
  std::filesystem::path file_ = dir_.path() / "rank-00000.db";
};

TEST_F(TailFilesTest, SegmentThatTheListingMissedIsOpenedIfALaterOneWasSeen) {
  make_segments({2, 3, 4, 5});
  EXPECT_EQ(opened({"rank-00000.tail.2", "rank-00000.tail.5"}), (std::vector<unsigned>{2, 3, 4, 5}));
  EXPECT_EQ(opened({"rank-00000.tail.4"}), (std::vector<unsigned>{2, 3, 4}));
}

TEST_F(TailFilesTest, GapsAndOtherNamesStay) {
  make_segments({0, 7});
  EXPECT_EQ(opened({"rank-00000.tail.7", "rank-00000.tail.0", "rank-00000.tail.07", "rank-00001.tail.1"}),
            (std::vector<unsigned>{0, 7}));
}

TEST_F(TailFilesTest, SegmentThatVanishedHasBeenSealed) {
  make_segments({1});
  EXPECT_EQ(opened({"rank-00000.tail.0", "rank-00000.tail.1"}), (std::vector<unsigned>{1}));
}

}  // namespace
}  // namespace ranklog
