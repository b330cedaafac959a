#pragma once

#include <string>

namespace ranklog {

// Of what an exception of a library says; LibTorch adds a stack trace below.
[[nodiscard]] inline std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace ranklog
