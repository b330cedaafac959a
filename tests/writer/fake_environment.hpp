#pragma once
// An environment made of pairs, so that launchers can be table-tested.

#include <map>
#include <string>
#include <utility>

#include "ranklog/writer/launch.hpp"

namespace ranklog::test {

using Variables = std::map<std::string, std::string>;

inline EnvLookup fake_environment(Variables variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace ranklog::test
