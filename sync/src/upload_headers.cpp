#include "upload_headers.hpp"

#include <nlohmann/json.hpp>

namespace ranklog::sync {

std::vector<std::pair<std::string, std::string>> parse_upload_headers(const nlohmann::json& list) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (!list.is_array()) return headers;
  for (const nlohmann::json& entry : list) {
    if (!entry.is_string()) continue;
    const std::string line = entry.get<std::string>();
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find_first_of("\r\n") != std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    std::string value = begin == std::string::npos ? "" : line.substr(begin);
    while (value.ends_with(' ') || value.ends_with('\t')) value.pop_back();
    headers.emplace_back(line.substr(0, colon), std::move(value));
  }
  return headers;
}

}  // namespace ranklog::sync
