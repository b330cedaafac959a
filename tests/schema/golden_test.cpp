// tests/data/golden-v1 was made by the first program that wrote version 1 (write_golden.cpp).

#include <gtest/gtest.h>

#include "listing.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"
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

// Whether whoever reads all of a file is told that it is damaged.
bool is_told(const fs::path& path) {
  try {
    const RankFile file = RankFile::open(path);
    for (const Stream stream : kStreams) {
      for (std::size_t i = 0; i < file.row_groups(stream).size(); ++i) (void)file.load(i, stream);
    }
    (void)file.events();
    (void)file.artifacts();
    (void)file.files();
    return !file.damage().empty();
  } catch (const Error& error) {
    return true;
  }
}

Listing list_or_nothing(const fs::path& path) {
  try {
    return list_file(path);
  } catch (const Error&) {
    return {};
  }
}

TEST_F(Golden, FlippedBitsOfItAreToldOrChangeNothing) {
  const fs::path path = dir_ / rank_file_name(0, 0);
  const Listing whole = list_file(path);
  const std::string bytes = read_file(path);
  std::size_t told = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 181) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_file(path, flipped);
    const bool is_named = is_told(path);
    told += is_named ? 1 : 0;
    EXPECT_TRUE(is_named || list_or_nothing(path) == whole) << "bit " << bit;
  }
  EXPECT_GT(told, 100u);
}

}  // namespace
}  // namespace ranklog::test
