#pragma once
// Runs the built program as a user does.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ranklog::test {

struct Ran {
  int status = -1;  // exit status; 128 + signal
  std::string out, err;
};

// In `folder`, with an environment of PATH and `variables` only, stdin empty.
[[nodiscard]] Ran run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                              const std::filesystem::path& folder,
                              const std::map<std::string, std::string>& variables = {});

}  // namespace ranklog::test
