#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "process_facts.hpp"

namespace ranklog::writer {
namespace {

// The value of the first line of a file that reads `name`, spaces, `mark`, spaces, value. Empty if there is
// none.
std::string value_of(const char* path, std::string_view name, char mark) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find(mark);
    if (!line.starts_with(name) || at == std::string::npos) continue;
    if (line.find_last_not_of(" \t", at - 1) + 1 != name.size()) continue;
    std::string value = line.substr(std::min(line.find_first_not_of(" \t", at + 1), line.size()));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    return value;
  }
  return "";
}

}  // namespace

std::string host_facts_json() {
  nlohmann::json facts = nlohmann::json::object();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts[name] = value;
  };
  utsname system{};
  if (::uname(&system) == 0) {
    add("kernel", std::string(system.sysname) + " " + system.release);
    add("architecture", system.machine);
  }
  add("os", value_of("/etc/os-release", "PRETTY_NAME", '='));
  add("cpu_model", value_of("/proc/cpuinfo", "model name", ':'));
  if (const auto processors = ::sysconf(_SC_NPROCESSORS_ONLN); processors > 0) {
    facts["cpu_count"] = processors;
  }
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page_bytes = ::sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page_bytes > 0) facts["memory_bytes"] = std::int64_t{pages} * page_bytes;
  return facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ranklog::writer
