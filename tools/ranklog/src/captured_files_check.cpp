#include "ranklog/cli/captured_files_check.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "ranklog/schema/error.hpp"

namespace ranklog::cli {

namespace fs = std::filesystem;

bool stays_inside(const fs::path& relative) {
  if (relative.empty() || relative.is_absolute()) return false;
  const fs::path normal = relative.lexically_normal();
  return *normal.begin() != ".." && normal != ".";
}

void CapturedFilesCheck::add(const RankFile& file, const fs::path& folder) {
  removals_.add(file);
  if (std::ranges::find(folders_, folder) == folders_.end()) folders_.push_back(folder);
  for (CapturedFile& captured : captured_files(file)) files_.insert(std::move(captured));
}

std::string CapturedFilesCheck::fault_of(const CapturedFile& file) const {
  if (!stays_inside(file.path)) return "it lies outside its experiment";
  std::string fault = "it is missing";
  for (const fs::path& folder : folders_) {
    std::error_code ignored;
    if (!fs::exists(folder / file.path, ignored)) continue;
    try {
      fault = find_fault(folder, file);
    } catch (const Error& error) {
      fault = error.what();
    }
    if (fault.empty()) return {};
  }
  return removals_.covers(file.path) ? std::string() : fault;
}

CapturedReport CapturedFilesCheck::run() const {
  CapturedReport report;
  if (!folders_.empty()) report.folder = folders_.front().string();
  report.files = files_.size();
  for (const CapturedFile& file : files_) {
    const std::string fault = fault_of(file);
    if (!fault.empty()) report.damage.push_back(file.path + ": " + fault);
  }
  return report;
}

}  // namespace ranklog::cli
