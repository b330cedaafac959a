#include "ranklog/schema/identity.hpp"

#include "ranklog/schema/error.hpp"

namespace ranklog {

std::string_view to_string(Strategy strategy) noexcept {
  switch (strategy) {
    case Strategy::kMain:
      return "main";
    case Strategy::kNode:
      return "node";
    case Strategy::kAll:
      return "all";
  }
  return "main";
}

Strategy parse_strategy(std::string_view text) {
  for (const Strategy strategy : {Strategy::kMain, Strategy::kNode, Strategy::kAll}) {
    if (text == to_string(strategy)) return strategy;
  }
  throw Error(ErrorCode::kUsage, "unknown strategy '" + std::string(text) + "'", "use main, node or all");
}

}  // namespace ranklog
