#pragma once
// The headers that a server wants on an upload: ["Name: value", ...].

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ranklog::sync {

[[nodiscard]] std::vector<std::pair<std::string, std::string>> parse_upload_headers(
    const nlohmann::json& list);

}  // namespace ranklog::sync
