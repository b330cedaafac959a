#pragma once
// Whether the files that artifacts and runs took are still what they were.

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "ranklog/schema/captured_file.hpp"

namespace ranklog::cli {

// Paths in a file come from whoever wrote it: none may leave the experiment's folder.
[[nodiscard]] bool stays_inside(const std::filesystem::path& relative);

struct CapturedReport {
  std::string folder;  // the experiment's, the first if it has several
  std::uint64_t files = 0;
  std::vector<std::string> damage;  // a line a file: "files/a: it is missing"
};

// Of one experiment: add() all its rank files, then run(). A file may lie in any of the experiment's folders.
class CapturedFilesCheck {
 public:
  void add(const RankFile& file, const std::filesystem::path& folder);
  [[nodiscard]] CapturedReport run() const;  // reads all of them

 private:
  [[nodiscard]] std::string fault_of(const CapturedFile& file) const;  // empty: none

  Removals removals_;
  std::vector<std::filesystem::path> folders_;
  std::set<CapturedFile> files_;
};

}  // namespace ranklog::cli
