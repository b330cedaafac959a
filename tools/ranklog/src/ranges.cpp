#include "ranklog/cli/ranges.hpp"

#include <algorithm>
#include <charconv>

#include "ranklog/schema/error.hpp"

namespace ranklog::cli {
namespace {

template <class Integer>
bool take(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Error bad_ranks(std::string_view text) {
  return {ErrorCode::kUsage, "'" + std::string(text) + "' names no ranks", "write them as 0-3,7"};
}

Error bad_steps(std::string_view text) {
  return {ErrorCode::kUsage, "'" + std::string(text) + "' is no range of steps",
          "write it as 100:200, 100: or :200"};
}

}  // namespace

RankSet RankSet::parse(std::string_view text) {
  RankSet set;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t dash = part.find('-');
    Range range{};
    if (!take(part.substr(0, dash), range.first)) throw bad_ranks(text);
    range.last = range.first;
    if (dash != std::string_view::npos && !take(part.substr(dash + 1), range.last)) throw bad_ranks(text);
    if (range.first < 0 || range.last < range.first) throw bad_ranks(text);
    set.ranges_.push_back(range);
  }
  return set;
}

bool RankSet::holds(int rank) const {
  return all() || std::any_of(ranges_.begin(), ranges_.end(), [rank](const Range& range) {
           return range.first <= rank && rank <= range.last;
         });
}

sql::StepRange parse_steps(std::string_view text) {
  sql::StepRange range;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    if (!take(text, range.low)) throw bad_steps(text);
    range.high = range.low;
    return range;
  }
  const std::string_view low = text.substr(0, colon);
  const std::string_view high = text.substr(colon + 1);
  if (!low.empty() && !take(low, range.low)) throw bad_steps(text);
  if (!high.empty() && !take(high, range.high)) throw bad_steps(text);
  if ((low.empty() && high.empty()) || range.empty()) throw bad_steps(text);
  return range;
}

}  // namespace ranklog::cli
