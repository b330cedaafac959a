#include "ranklog/schema/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace ranklog {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::string from = lower(a);
  const std::string to = lower(b);
  // Three rows of the usual matrix: a swap looks two rows back.
  std::vector<std::size_t> before(to.size() + 1);
  std::vector<std::size_t> above(to.size() + 1);
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[to.size()];
}

std::vector<std::string> nearest(std::string_view typed, std::span<const std::string> known,
                                 std::size_t limit) {
  const std::string wanted = lower(typed);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& name : known) {
    const std::size_t slips = edit_distance(typed, name);
    const bool holds = wanted.size() >= 2 && lower(name).find(wanted) != std::string::npos;
    if (slips <= std::max<std::size_t>(1, typed.size() / 3)) {
      ranked.emplace_back(slips, name);
    } else if (holds) {
      ranked.emplace_back(typed.size() + slips, name);  // behind every typing slip
    }
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(limit, ranked.size()); ++i) names.push_back(ranked[i].second);
  return names;
}

std::string hint_for_flag(std::string_view message, std::span<const std::string> known) {
  const std::size_t at = message.find("--");
  if (at == std::string_view::npos) return {};
  const auto meant = nearest(message.substr(at, message.find_first_of(" =", at) - at), known);
  return meant.empty() ? std::string() : "did you mean " + join_alternatives(meant) + "?";
}

std::string join_alternatives(std::span<const std::string> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  return out;
}

}  // namespace ranklog
