#pragma once
// The files that artifacts and the run took: whether they are still what they were, and which of them the log
// says were removed on purpose, so that their absence is no damage.

#include <compare>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/schema/rank_file.hpp"

namespace ranklog {

// A file as it was when an artifact or the run took it.
struct CapturedFile {
  std::string path;  // relative to the experiment's folder
  std::uint64_t size = 0;
  std::string md5, sha256;  // lower-case hex digits
  friend auto operator<=>(const CapturedFile&, const CapturedFile&) = default;
};
// Those of a file, in the order in which they were logged; references are none.
[[nodiscard]] std::vector<CapturedFile> captured_files(const RankFile& file);
// What is wrong with it in `folder`: "it is missing"; empty: nothing. Reads it once. Throws Error (kIo).
[[nodiscard]] std::string find_fault(const std::filesystem::path& folder, const CapturedFile& file);

class Removals {
 public:
  // The "checkpoint-removed" events of one file.
  void add(const RankFile& file);
  // `path`, relative to the experiment's folder, is one of those that were removed, or lies in one. It may be
  // there all the same: a removal is told before it is done, and its name may be given again.
  [[nodiscard]] bool covers(std::string_view path) const;
  // It is covered, and in `folder`, the experiment's, it is not there or holds other bytes.
  [[nodiscard]] bool took(const std::filesystem::path& folder, const CapturedFile& file) const;

 private:
  std::set<std::string, std::less<>> paths_;
};

}  // namespace ranklog
