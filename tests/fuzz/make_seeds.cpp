// Seeds for the fuzz targets, small ones that reach every encoding:  fuzz_make_seeds FOLDER

#include <filesystem>
#include <iostream>

#include "envelope.hpp"
#include "ranklog/schema/chunk_codec.hpp"
#include "schema/sample_rows.hpp"
#include "schema/sample_series.hpp"
#include "support/rank_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::test {
namespace {

namespace fs = std::filesystem;

void write_chunks(const fs::path& folder) {
  fs::create_directories(folder);
  std::size_t number = 0;
  for (const Series& series : kSeries) {
    for (const std::size_t rows : {5, 64}) {
      const std::string chunk = encode_chunk(group_of(series, rows, rows));
      write_file(folder / std::to_string(number++), open_envelope(chunk, kMaxChunkRawBytes));
    }
  }
  write_file(folder / "awkward", open_envelope(encode_chunk(awkward_group()), kMaxChunkRawBytes));
}

void write_files(const fs::path& folder) {
  fs::create_directories(folder);
  const TempDir dir;
  RankFileBuilder builder(dir.path() / "p" / "e" / "rank-00000.db", identity_of_rank(0));
  for (int i = 0; i < 20; ++i) {
    builder.row(i, {{"loss", 1.0 / (i + 1)}, {"note", "text"}});
    builder.row(0, {{"cpu", i}}, Stream::kSystem);
  }
  builder.operation(RunFile{0, 0, "notes.txt", "files/n", 0, "", "", "file"});
  builder.operation(Event{0, 0, 15, "rewind", "{}"});
  builder.seal();
  for (int i = 20; i < 30; ++i) builder.row(i, {{"loss", 1.0 / (i + 1)}});
  const std::string tail = read_file(builder.segment());
  builder.finish();
  const std::string database = read_file(builder.path());
  const auto length = static_cast<std::uint32_t>(database.size());
  write_file(folder / "ended",
             std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + database + tail);
}

}  // namespace
}  // namespace ranklog::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fuzz_make_seeds FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  ranklog::test::write_chunks(folder / "chunk");
  ranklog::test::write_files(folder / "file");
}
