#include "mount_table.hpp"

#include <charconv>

namespace ranklog::writer {
namespace {

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

// The kernel writes blanks, tabs, newlines and backslashes as \040 and the like.
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= line.size();) {
    const std::size_t end = std::min(line.find(separator, start), line.size());
    if (end > start) parts.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

// id parent major:minor root mount-point options [optional ...] - type source super-options
std::optional<Mount> parse_line(std::string_view line) {
  const auto fields = split(line, ' ');
  constexpr std::size_t kMountPoint = 4, kFirstOptional = 6;
  std::size_t dash = kFirstOptional;
  while (dash < fields.size() && fields[dash] != "-") ++dash;
  if (dash + 2 >= fields.size()) return std::nullopt;
  Mount mount;
  const auto [end, error] = std::from_chars(fields[0].data(), fields[0].data() + fields[0].size(), mount.id);
  if (error != std::errc{}) return std::nullopt;
  mount.mount_point = unescape(fields[kMountPoint]);
  mount.type = unescape(fields[dash + 1]);
  mount.source = unescape(fields[dash + 2]);
  if (dash + 3 < fields.size()) mount.options = fields[dash + 3];
  return mount;
}

bool holds(std::string_view mount_point, std::string_view path) {
  if (mount_point == "/") return path.starts_with('/');
  return path.starts_with(mount_point) &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

}  // namespace

std::vector<Mount> parse_mount_table(std::string_view text) {
  std::vector<Mount> mounts;
  for (const std::string_view line : split(text, '\n')) {
    if (auto mount = parse_line(line)) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

const Mount* find_mount(std::span<const Mount> mounts, const std::filesystem::path& path,
                        std::optional<std::uint64_t> id) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    if (id && mount.id == *id) return &mount;
    if (!holds(mount.mount_point, path.native())) continue;
    if (best == nullptr || mount.mount_point.size() >= best->mount_point.size()) best = &mount;
  }
  return best;
}

std::string mount_option(const Mount& mount, std::string_view name) {
  for (const std::string_view option : split(mount.options, ',')) {
    if (option.size() > name.size() && option.starts_with(name) && option[name.size()] == '=') {
      return unescape(option.substr(name.size() + 1));
    }
  }
  return {};
}

}  // namespace ranklog::writer
