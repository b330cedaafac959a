#include "process.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
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

// Field 22, unless the process is gone or only waits to be reaped.
std::optional<std::uint64_t> start_ticks_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
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
  if (!start_ticks_of("self")) return false;  // no /proc to look in
  return start_ticks_of(std::to_string(pid)) != start_ticks;
}

}  // namespace ranklog
