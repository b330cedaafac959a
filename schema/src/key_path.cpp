#include "ranklog/schema/key_path.hpp"

#include <algorithm>
#include <array>

#include "ranklog/schema/error.hpp"

namespace ranklog {

std::string KeyPath::display() const {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) out += '.';
    for (const char c : names[i]) {
      if (c == '.' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

KeyPath KeyPath::parse(std::string_view display) {
  KeyPath path{{std::string()}};
  for (std::size_t i = 0; i < display.size(); ++i) {
    if (display[i] == '.') {
      path.names.emplace_back();
      continue;
    }
    if (display[i] == '\\') {
      ++i;
      if (i == display.size() || (display[i] != '.' && display[i] != '\\')) {
        throw Error(ErrorCode::kUsage,
                    "the key '" + std::string(display) + "' holds a backslash that escapes nothing",
                    "write \\\\ for a backslash and \\. for a dot inside a name");
      }
    }
    path.names.back() += display[i];
  }
  return path;
}

bool is_reserved_name(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 4> kReserved = {"_step", "_runtime", "_timestamp", "_wandb"};
  return std::ranges::find(kReserved, name) != kReserved.end();
}

}  // namespace ranklog
