#include "ranklog/schema/disk_space.hpp"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "ranklog/schema/error.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

struct Space {
  fs::path place;
  std::uint64_t free_bytes = 0;  // for who is not root
  std::uint64_t bytes = 0;
  std::uint64_t free_files = 0;
  std::uint64_t files = 0;  // 0 where they are not counted
};

std::optional<Space> space_of(const fs::path& path) {
  struct statvfs facts = {};
  for (fs::path place = path; ::statvfs(place.c_str(), &facts) != 0; place = place.parent_path()) {
    if (!place.has_relative_path()) return std::nullopt;
  }
  const std::uint64_t block = facts.f_frsize;
  return Space{path, facts.f_bavail * block, facts.f_blocks * block, facts.f_favail, facts.f_files};
}

std::string file_limit_text() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return "files may have " + size_text(limit.rlim_cur) + ": ulimit -f";
}

std::string facts_text(int error_number, const fs::path& path) {
  if (error_number == EFBIG) return file_limit_text();
  if (error_number != ENOSPC && error_number != EDQUOT) return {};
  const auto space = space_of(path);
  if (!space) return {};
  if (error_number == EDQUOT) return "the file system itself has " + size_text(space->free_bytes) + " free";
  if (space->files > 0 && space->free_files == 0) {
    return "all " + std::to_string(space->files) + " inodes of the file system are in use";
  }
  return size_text(space->free_bytes) + " of " + size_text(space->bytes) + " free on the file system of " +
         space->place.string();
}

}  // namespace

std::string disk_error_text(int error_number, const fs::path& path) {
  const std::string facts = facts_text(error_number, path);
  return facts.empty() ? errno_text(error_number) : errno_text(error_number) + " (" + facts + ")";
}

}  // namespace ranklog
