// What a later version of ranklog may add to a file without giving it a new version number.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>

#include "bytes.hpp"
#include "crc32c.hpp"
#include "envelope.hpp"
#include "rank_schema.hpp"
#include "ranklog/schema/chunk_codec.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "ranklog/schema/salvage.hpp"
#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using test::identity_of_rank;
using test::RankFileBuilder;
using test::TempDir;

void execute(const fs::path& path, const std::string& sql) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  sqlite3_close(connection);
}

// As whoever adds to `meta` has to.
void record_digest(const fs::path& path) {
  Connection connection(path, SQLITE_OPEN_READWRITE, 1000);
  record_meta_digest(connection);
}

std::string hex(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "x'";
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text + "'";
}

// To a file with one row of the history.
void add_chunk_of_stream_3(const fs::path& path) {
  RowGroup group;
  group.stream = static_cast<Stream>(3);
  group.sequence = {2};
  group.step = {5};
  group.time_ns = {7};
  group.columns.emplace_back(KeyId{0}).push_back(2.0);
  execute(path, "UPDATE meta SET value = 2 WHERE name IN ('chunks', 'chunk_rows')");
  record_digest(path);
  execute(path, "INSERT INTO chunk VALUES(2, 3, 1, 2, 2, 5, 5, 7, 7, " + hex(encode_stats(describe(group))) +
                    ", " + hex(encode_chunk(group)) + ")");
}

TEST(Extension, UnknownTablesColumnsAndNamesAreIgnored) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  builder.row(1, {{"x", 1}}).operation(ConfigEntry{"lr", "1"}).operation(Event{0, 0, 1, "new kind", "{}"});
  builder.finish();
  execute(builder.path(),
          "CREATE TABLE novelty(a, b); INSERT INTO novelty VALUES(1, 2); ALTER TABLE chunk ADD COLUMN hue;"
          "ALTER TABLE config ADD COLUMN author; ALTER TABLE event ADD COLUMN place DEFAULT 'here';"
          "INSERT INTO meta VALUES('novelty', 'x')");
  record_digest(builder.path());
  const RankFile file = RankFile::open(builder.path());
  EXPECT_TRUE(file.damage().empty());
  EXPECT_EQ(file.load(0).rows(), 1u);
  EXPECT_EQ(file.config().at(0).json, "1");
  EXPECT_EQ(file.events().at(0).kind, "new kind");
}

TEST(Extension, ChunksOfUnknownStreamsAreIgnored) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  builder.row(1, {{"x", 1}}).finish();
  add_chunk_of_stream_3(builder.path());
  const RankFile file = RankFile::open(builder.path());
  EXPECT_TRUE(file.damage().empty());
  for (const Stream stream : kStreams) {
    EXPECT_EQ(file.row_groups(stream).size(), stream == Stream::kHistory ? 1u : 0u);
  }
  EXPECT_NO_THROW((void)compact_rank_file(builder.path()));
  EXPECT_TRUE(RankFile::open(builder.path()).damage().empty());
}

// It knows what it makes anew: nothing of that must be lost in silence.
TEST(Extension, ACopySaysWhatItLeavesOut) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  builder.row(1, {{"x", 1}}).operation(Event{0, 0, 1, "new kind", "{}"}).finish();
  EXPECT_EQ(copy_rank_file(builder.path(), dir / "plain.db").left_out, std::vector<std::string>{});
  execute(builder.path(),
          "CREATE TABLE novelty(a, b); ALTER TABLE config ADD COLUMN author;"
          "INSERT INTO meta VALUES('shade', 'x')");
  add_chunk_of_stream_3(builder.path());
  const Salvage salvage = copy_rank_file(builder.path(), dir / "copy.db");
  EXPECT_EQ(salvage.left_out,
            (std::vector<std::string>{"column config.author", "column novelty.a", "column novelty.b",
                                      "shade in meta", "stream 3", "table novelty"}));
  EXPECT_TRUE(salvage.damage.empty());
  EXPECT_EQ(salvage.rows, 1u);
}

std::string frame(std::uint8_t type, std::string_view body) {
  std::string payload(1, static_cast<char>(type));
  payload += body;
  std::string out;
  append_fixed(out, static_cast<std::uint32_t>(payload.size()));
  append_fixed(out, frame_checksum(payload));
  out += payload;
  out.resize(frame_bytes(payload.size()));
  return out;
}

TEST(Extension, TailRecordsOfLaterTypesArePassedOverAndMembersIgnored) {
  const TempDir dir;
  RankFileBuilder builder(dir / "rank-00000.db", identity_of_rank(0));
  builder.row(1, {{"x", 1}});
  std::string numbers;
  append_fixed(numbers, std::uint64_t{100});
  append_fixed(numbers, std::int64_t{0});
  std::ofstream(builder.segment(), std::ios::app | std::ios::binary)
      << frame(22, "whatever") << frame(255, "")
      << frame(16, numbers + R"({"key":"lr","json":"1","novelty":[]})");
  builder.row(2, {{"x", 2}});
  const RankFile file = RankFile::open(builder.path());
  EXPECT_TRUE(file.damage().empty());
  EXPECT_EQ(file.info().rows, 2u);
  EXPECT_EQ(file.config().size(), 1u);
  EXPECT_EQ(copy_rank_file(builder.path(), dir / "copy.db").left_out,
            std::vector<std::string>{"2 records of the tail, of a later version"});
}

}  // namespace
}  // namespace ranklog
