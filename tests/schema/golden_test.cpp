// tests/data/golden-v1 was made by the first program that wrote version 1 (write_golden.cpp).

#include <gtest/gtest.h>

#include "listing.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/rank_database.hpp"
#include "support/gzip.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::test {
namespace {

namespace fs = std::filesystem;

class Golden : public testing::Test {
 protected:
  // SQLite may write beside a file that has not ended, so a copy is read.
  Golden() { fs::copy(fs::path(RANKLOG_TEST_DATA) / "golden-v1", dir_.path(), fs::copy_options::recursive); }

  [[nodiscard]] Listing found() const {
    Listing listing = list_file(dir_ / rank_file_name(0, 0));
    for (const Listing& more : {list_file(dir_ / rank_file_name(0, 1)), list_history(dir_.path())}) {
      listing.insert(listing.end(), more.begin(), more.end());
    }
    return listing;
  }
  void expect_the_listing() const {
    const Listing expected = parse_lines(read_gzip_file(dir_ / "expected.jsonl.gz"));
    const Listing listing = found();
    ASSERT_EQ(listing.size(), expected.size());
    for (std::size_t line = 0; line < expected.size(); ++line) {
      ASSERT_EQ(listing[line], expected[line]) << "line " << line + 1;
    }
  }

  TempDir dir_;
};

TEST_F(Golden, FilesOfVersion1ReadAsTheyWereWritten) {
  expect_the_listing();
}

TEST_F(Golden, CompactionChangesNothingOfIt) {
  const Compaction done = compact_rank_file(dir_ / rank_file_name(0, 0));
  EXPECT_LT(done.chunks_after, done.chunks_before);
  expect_the_listing();
}

TEST_F(Golden, FilesThatItNamesHaveTheBytesThatItSays) {
  const RankFile file = RankFile::open(dir_ / rank_file_name(0, 0));
  ASSERT_EQ(file.files().size(), 2u);
  for (const RunFile& named : file.files()) {
    const FileDigests digests = digest_file(dir_ / named.path);
    EXPECT_EQ(digests.size, named.size);
    EXPECT_EQ(digests.md5, named.md5);
    EXPECT_EQ(digests.sha256, named.sha256);
  }
}

}  // namespace
}  // namespace ranklog::test
