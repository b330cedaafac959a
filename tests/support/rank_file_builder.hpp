#pragma once
// Writes a rank file as the writer would, row by row, with nothing of the writer's: for tests of who reads.
//
//   RankFileBuilder file(dir / "rank-00000.db", identity_of_rank(0, 4));
//   file.row(0, {{"loss", 0.5}});
//   file.seal();
//   file.row(1, {{"loss", 0.25}});   // stays in the tail
//   file.finish();                   // or not: the file is then as a dead writer leaves it

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranklog/schema/rank_database.hpp"
#include "ranklog/schema/tail.hpp"

namespace ranklog::test {

inline constexpr std::int64_t kStartTimeNs = 1'700'000'000'000'000'000;

// Of project "p", experiment "e", launch "t0", as if one node had all ranks.
[[nodiscard]] Identity identity_of_rank(int rank, int world_size = 1);

// Damages every chunk of a file that nobody has open: its records can be read, and none of its sealed rows.
void ruin_chunks(const std::filesystem::path& path);

class RankFileBuilder {
 public:
  using Fields = std::vector<std::pair<std::string, ValueView>>;

  // Makes the folders above `path` too.
  RankFileBuilder(const std::filesystem::path& path, Identity identity,
                  std::int64_t start_time_ns = kStartTimeNs, const Durability& durability = {});

  // To the tail. Keys are display forms (KeyPath::parse); a row's time is start + 1 ms a sequence number.
  RankFileBuilder& row(std::int64_t step, const Fields& fields, Stream stream = Stream::kHistory);
  RankFileBuilder& operation(OperationBody body);
  // Everything that is in the tail goes into chunks and tables, and the tail segment goes away.
  RankFileBuilder& seal();
  // The commit without removing the segment, as if the writer had died in between.
  RankFileBuilder& commit_only();
  // As far as it goes before `deadline`.
  RankFileBuilder& merge_small_chunks(
      std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max());
  // Later records go to a new segment.
  RankFileBuilder& next_segment();
  // Seals, ends the file, and closes it.
  void finish(EndState state = EndState::kFinished, std::optional<int> exit_code = 0);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::filesystem::path segment() const { return segment_path(segment_); }
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }

 private:
  [[nodiscard]] std::filesystem::path segment_path(unsigned index) const;
  void append(std::string_view record);
  KeyId key_id(const std::string& display);
  [[nodiscard]] std::int64_t now_ns() const noexcept;

  std::filesystem::path path_;
  Identity identity_;
  std::int64_t start_time_ns_;
  std::optional<RankDatabase> database_;
  std::map<std::string, KeyId> keys_;
  std::vector<KeyPath> new_keys_;
  RowGroupBuilder rows_;
  std::vector<Operation> operations_;
  std::uint64_t sequence_ = 0;
  unsigned segment_ = 0;
  unsigned first_segment_ = 0;
};

}  // namespace ranklog::test
