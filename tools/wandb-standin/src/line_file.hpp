#pragma once
// The lines of one file_stream file, addressed by number, kept one a line on disk.

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace ranklog::standin {

// Lines may come again (the later one wins) and out of order; a line that never came is a hole, shown on disk
// as an empty line. Appending is cheap, changing an earlier line rewrites the file.
class LineFile {
 public:
  enum class Placed { kAppended, kSame, kReplaced, kFilledHole, kAfterGap };

  // Takes over what the file holds. `holes` are the line numbers that were never sent.
  LineFile(std::filesystem::path path, std::set<std::uint64_t> holes);

  // A last newline is dropped; newlines inside become spaces.
  Placed put(std::uint64_t number, std::string line);
  // Writes what put() has left in memory. Throws ranklog::Error.
  void flush();

  // One past the highest line number.
  [[nodiscard]] std::uint64_t count() const noexcept { return lines_.size(); }
  // The line, empty for a hole.
  [[nodiscard]] const std::string& line(std::uint64_t number) const { return lines_.at(number); }
  [[nodiscard]] const std::set<std::uint64_t>& holes() const noexcept { return holes_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void append_to_disk();
  void rewrite_disk();

  std::filesystem::path path_;
  std::vector<std::string> lines_;
  std::set<std::uint64_t> holes_;
  std::uint64_t on_disk_ = 0;  // lines already written
  bool rewrite_ = false;
};

}  // namespace ranklog::standin
