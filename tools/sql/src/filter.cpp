#include "filter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ranklog::sql {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();
constexpr StepRange kNothing{1, 0};

bool is_comparison(int operation) {
  switch (operation) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_LE:
    case SQLITE_INDEX_CONSTRAINT_LT:
    case SQLITE_INDEX_CONSTRAINT_GE:
      return true;
    default:
      return false;
  }
}

StepRange integers_that(int operation, std::int64_t value) {
  switch (operation) {
    case SQLITE_INDEX_CONSTRAINT_GT:
      return value == kGreatest ? kNothing : StepRange{value + 1, kGreatest};
    case SQLITE_INDEX_CONSTRAINT_GE:
      return {value, kGreatest};
    case SQLITE_INDEX_CONSTRAINT_LT:
      return value == kLeast ? kNothing : StepRange{kLeast, value - 1};
    case SQLITE_INDEX_CONSTRAINT_LE:
      return {kLeast, value};
    default:
      return {value, value};
  }
}

StepRange integers_that(int operation, double value) {
  const bool upwards = operation == SQLITE_INDEX_CONSTRAINT_GT || operation == SQLITE_INDEX_CONSTRAINT_GE;
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (value >= kLimit) {
    return upwards || operation == SQLITE_INDEX_CONSTRAINT_EQ ? kNothing : StepRange{};
  }
  if (value < -kLimit) return upwards ? StepRange{} : kNothing;
  const double floor = std::floor(value);
  const auto whole = static_cast<std::int64_t>(floor);
  if (floor == value) return integers_that(operation, whole);
  if (operation == SQLITE_INDEX_CONSTRAINT_EQ) return kNothing;
  return integers_that(upwards ? SQLITE_INDEX_CONSTRAINT_GT : SQLITE_INDEX_CONSTRAINT_LE, whole);
}

std::string_view text_of(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return text == nullptr ? std::string_view()
                         : std::string_view(text, static_cast<std::size_t>(sqlite3_value_bytes(value)));
}

}  // namespace

bool can_push(Pushdown pushdown, int operation) {
  switch (pushdown) {
    case Pushdown::kNone:
      return false;
    case Pushdown::kInteger:
    case Pushdown::kSeconds:
      return is_comparison(operation);
    case Pushdown::kText:
      return operation == SQLITE_INDEX_CONSTRAINT_EQ || operation == SQLITE_INDEX_CONSTRAINT_GLOB;
    case Pushdown::kParameter:
      return operation == SQLITE_INDEX_CONSTRAINT_EQ;
  }
  return false;
}

void Filter::add(int column, Pushdown pushdown, int operation, sqlite3_value* value) {
  const int type = sqlite3_value_type(value);
  if (type == SQLITE_NULL) {
    impossible_ = true;
    return;
  }
  const bool number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
  if (pushdown == Pushdown::kParameter) {
    parameters_[column] = sqlite3_value_int64(value) != 0;
  } else if (pushdown == Pushdown::kInteger && type == SQLITE_INTEGER) {
    narrow(column, integers_that(operation, std::int64_t{sqlite3_value_int64(value)}));
  } else if (pushdown == Pushdown::kInteger && type == SQLITE_FLOAT) {
    narrow(column, integers_that(operation, sqlite3_value_double(value)));
  } else if (pushdown == Pushdown::kSeconds && number) {
    reals_.push_back({column, operation, sqlite3_value_double(value)});
  } else if (pushdown == Pushdown::kText && type == SQLITE_TEXT) {
    texts_.push_back({column, operation, std::string(text_of(value))});
  }
}

void Filter::narrow(int column, StepRange to) {
  StepRange& range = ranges_[column];
  range = {std::max(range.low, to.low), std::min(range.high, to.high)};
  if (range.empty()) impossible_ = true;
}

StepRange Filter::range(int column) const {
  const auto found = ranges_.find(column);
  return found == ranges_.end() ? StepRange{} : found->second;
}

bool Filter::accepts(int column, std::string_view value) const {
  return std::all_of(texts_.begin(), texts_.end(), [&](const TextBound& bound) {
    if (bound.column != column) return true;
    if (bound.operation == SQLITE_INDEX_CONSTRAINT_EQ) return bound.text == value;
    return sqlite3_strglob(bound.text.c_str(), std::string(value).c_str()) == 0;
  });
}

bool Filter::overlaps(int column, double low, double high) const {
  // Ends count as inside: an integer compared with a real number may have been rounded to one.
  return std::all_of(reals_.begin(), reals_.end(), [&](const RealBound& bound) {
    if (bound.column != column) return true;
    switch (bound.operation) {
      case SQLITE_INDEX_CONSTRAINT_GT:
      case SQLITE_INDEX_CONSTRAINT_GE:
        return high >= bound.value;
      case SQLITE_INDEX_CONSTRAINT_LT:
      case SQLITE_INDEX_CONSTRAINT_LE:
        return low <= bound.value;
      default:
        return low <= bound.value && bound.value <= high;
    }
  });
}

bool Filter::parameter(int column, bool fallback) const {
  const auto found = parameters_.find(column);
  return found == parameters_.end() ? fallback : found->second;
}

}  // namespace ranklog::sql
