#include "proc_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <set>

namespace ranklog::writer {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

template <class Line>
void for_each_line(std::string_view text, Line&& line) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    line(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::uint64_t number_at(const std::vector<std::string_view>& words, std::size_t index) {
  return index < words.size() ? parse_unsigned(words[index]).value_or(0) : 0;
}

// "Name:  value" of /proc's tables.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  line = trimmed(line.substr(name.size()));
  if (!line.starts_with(':')) return std::nullopt;
  return trimmed(line.substr(1));
}

// mountinfo writes blanks, tabs, newlines and backslashes as \ and three octal digits.
std::string unescape(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
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

bool holds(std::string_view folder, std::string_view path) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

std::string read_small_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  std::array<char, 16384> block;
  for (;;) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  ::close(fd);
  return text;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const auto first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return words;
    const auto end = std::min(text.find_first_of(kBlanks, first), text.size());
    words.push_back(text.substr(first, end - first));
    text.remove_prefix(end);
  }
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  text = trimmed(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const auto name_end = text.rfind(')');  // the name before it may hold blanks and brackets
  if (name_end == std::string_view::npos) return std::nullopt;
  const auto words = split_words(text.substr(name_end + 1));
  // Numbers of fields as in proc_pid_stat(5), which calls the first of `words` field 3.
  const auto field = [&](std::size_t number) { return number_at(words, number - 3); };
  if (words.size() < 22) return std::nullopt;
  return ProcessStat{field(14) + field(15), field(22), field(20), field(24)};
}

std::optional<MemoryInfo> parse_meminfo(std::string_view text) {
  MemoryInfo info;
  bool knows_available = false;
  std::uint64_t reusable = 0;
  for_each_line(text, [&](std::string_view line) {
    const auto bytes = [&](std::string_view name) -> std::optional<std::uint64_t> {
      const auto value = value_of(line, name);
      if (!value) return std::nullopt;
      return number_at(split_words(*value), 0) * 1024;
    };
    if (const auto total = bytes("MemTotal")) info.total = *total;
    if (const auto available = bytes("MemAvailable")) {
      info.available = *available;
      knows_available = true;
    }
    for (const auto* name : {"MemFree", "Buffers", "Cached"}) reusable += bytes(name).value_or(0);
  });
  if (info.total == 0) return std::nullopt;
  if (!knows_available) info.available = reusable;  // Linux before 3.14
  return info;
}

std::optional<NetworkBytes> parse_net_dev(std::string_view text) {
  NetworkBytes sum;
  bool found = false;
  for_each_line(text, [&](std::string_view line) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || trimmed(line.substr(0, colon)) == "lo") return;
    const auto words = split_words(line.substr(colon + 1));
    constexpr std::size_t kReceived = 0, kSent = 8;
    if (words.size() <= kSent) return;
    found = true;
    sum.received += number_at(words, kReceived);
    sum.sent += number_at(words, kSent);
  });
  return found ? std::optional(sum) : std::nullopt;
}

std::optional<DiskBytes> find_disk(std::string_view diskstats, std::string_view number) {
  constexpr std::uint64_t kSectorBytes = 512;  // in this table, whatever the device's own are
  std::optional<DiskBytes> found;
  for_each_line(diskstats, [&](std::string_view line) {
    const auto words = split_words(line);
    if (words.size() < 10 || std::string(words[0]) + ":" + std::string(words[1]) != number) return;
    found = {std::string(words[2]), number_at(words, 5) * kSectorBytes, number_at(words, 9) * kSectorBytes};
  });
  return found;
}

std::vector<MountPoint> parse_mountinfo(std::string_view text) {
  std::vector<MountPoint> mounts;
  for_each_line(text, [&](std::string_view line) {
    const auto separator = line.find(" - ");  // the fields before it vary in number
    if (separator == std::string_view::npos) return;
    const auto words = split_words(line.substr(0, separator));
    const auto source = split_words(line.substr(separator + 3));
    if (words.size() < 5 || source.empty()) return;
    mounts.push_back({std::string(words[2]), unescape(words[3]), unescape(words[4]), std::string(source[0]),
                      source.size() > 2 ? std::string(source[2]) : ""});
  });
  return mounts;
}

std::optional<MountPoint> find_mount(const std::vector<MountPoint>& mounts,
                                     const std::filesystem::path& path) {
  const MountPoint* best = nullptr;
  for (const auto& mount : mounts) {  // of mounts over each other, the last is seen
    if (!holds(mount.path, path.native())) continue;
    if (best == nullptr || mount.path.size() >= best->path.size()) best = &mount;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

int count_processors(std::string_view cpuinfo) {
  int processors = 0;
  for_each_line(cpuinfo, [&](std::string_view line) { processors += value_of(line, "processor") ? 1 : 0; });
  return processors;
}

int count_physical_cores(std::string_view cpuinfo) {
  std::set<std::pair<std::string_view, std::string_view>> cores;
  std::string_view package;
  for_each_line(cpuinfo, [&](std::string_view line) {
    if (const auto id = value_of(line, "physical id")) package = *id;
    if (const auto id = value_of(line, "core id")) cores.emplace(package, *id);
  });
  return cores.empty() ? count_processors(cpuinfo) : static_cast<int>(cores.size());
}

int count_allowed_cpus(std::string_view status) {
  std::uint64_t count = 0;
  for_each_line(status, [&](std::string_view line) {
    auto list = value_of(line, "Cpus_allowed_list").value_or("");
    while (!list.empty()) {
      const auto comma = list.find(',');
      const auto range = list.substr(0, comma);
      const auto dash = range.find('-');
      const auto first = parse_unsigned(range.substr(0, dash));
      const auto last = dash == std::string_view::npos ? first : parse_unsigned(range.substr(dash + 1));
      if (first && last && *last >= *first) count += *last - *first + 1;
      list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    }
  });
  return static_cast<int>(count);
}

}  // namespace ranklog::writer
