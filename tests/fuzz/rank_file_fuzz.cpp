// Hostile rank files with a hostile tail: opening gives an answer in bounded time and memory, and every chunk
// that the index names can be read or is named as damaged.
//
// The input is a u32, the length of the database, then the database, then one tail segment.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "support/temp_dir.hpp"

namespace {

void load_all(const ranklog::RankFile& file, ranklog::Stream stream) {
  for (std::size_t i = 0; i < file.row_groups(stream).size(); ++i) {
    try {
      (void)file.load(i, stream);
    } catch (const ranklog::Error& error) {
      if (file.damage().empty()) std::abort();
    }
  }
}

void read_all(const std::filesystem::path& path) {
  const auto file = ranklog::RankFile::open(path);
  for (const ranklog::Stream stream : ranklog::kStreams) load_all(file, stream);
  (void)file.config();
  (void)file.metric_definitions();
  (void)file.summary_overrides();
  (void)file.events();
  (void)file.rewinds();
  (void)file.artifacts();
  (void)file.files();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint32_t database_bytes = 0;
  if (size < sizeof(database_bytes)) return 0;
  std::memcpy(&database_bytes, data, sizeof(database_bytes));
  std::string_view input(reinterpret_cast<const char*>(data), size);
  input.remove_prefix(sizeof(database_bytes));
  static const ranklog::test::TempDir dir;
  const std::filesystem::path path = dir.path() / "rank-00000.db";
  for (const char* side : {"-wal", "-shm", "-journal"}) std::filesystem::remove(path.string() + side);
  ranklog::test::write_file(path, input.substr(0, database_bytes));
  const std::string_view tail =
      database_bytes < input.size() ? input.substr(database_bytes) : std::string_view();
  ranklog::test::write_file(ranklog::tail_segment_path(path, 1), tail);
  try {
    read_all(path);
  } catch (const ranklog::Error&) {
    // Not ours, a newer version, or damaged beyond use: an answer.
  }
  return 0;
}
