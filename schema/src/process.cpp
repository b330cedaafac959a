#include "process.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace ranklog {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

// The line of /proc/<pid>/stat; empty if there is no such process or this one may not see it.
std::string stat_line(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  return line;
}

// Field 22, unless the process only waits to be reaped.
std::optional<std::uint64_t> start_ticks_in(const std::string& line) {
  // Field 2, the name, may hold spaces and brackets; the last bracket ends it.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  fields >> field;
  if (field == "Z" || field == "X") return std::nullopt;
  for (int number = 4; number < 22; ++number) fields >> field;
  std::uint64_t ticks = 0;
  if (!(fields >> ticks)) return std::nullopt;
  return ticks;
}

}  // namespace

bool is_gone_from_this_host(std::string_view host, std::int64_t pid, std::uint64_t start_ticks) {
  if (pid <= 0 || host.empty() || host != host_name()) return false;
  if (pid > std::numeric_limits<pid_t>::max()) return true;
  if (const std::string line = stat_line(pid); !line.empty()) return start_ticks_in(line) != start_ticks;
  // Without /proc, or with one that hides other users' processes (hidepid), the number alone has to do.
  return ::kill(static_cast<pid_t>(pid), 0) == -1 && errno == ESRCH;
}

}  // namespace ranklog
