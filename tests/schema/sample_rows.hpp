#pragma once
// Values that a format must keep bit for bit, and row groups that hold them.

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ranklog/schema/row_group.hpp"

namespace ranklog::test {

// The texts live in static storage.
inline std::vector<ValueView> awkward_values() {
  static const std::string long_text(70'000, 'y');
  static const std::string with_nul("nul\0inside", 10);
  using Double = std::numeric_limits<double>;
  using Int = std::numeric_limits<std::int64_t>;
  return {nullptr,
          ValueView::scalar(ValueKind::kFloat64, 0x7FF8000000000000),  // NaN
          ValueView::scalar(ValueKind::kFloat64, 0xFFF80000DEADBEEF),  // NaN with a payload
          ValueView::scalar(ValueKind::kFloat64, 0x7FF0000000000001),  // signalling NaN
          Double::infinity(),
          -Double::infinity(),
          0.0,
          -0.0,
          Double::denorm_min(),
          -Double::min() / 4,
          Double::max(),
          0.1,
          Int::min(),
          Int::max(),
          std::int64_t{9007199254740993},  // 2^53 + 1
          0,
          -1,
          true,
          false,
          "",
          "plain",
          "\xF0\x9F\x9A\x80 emoji",
          "line\nbreak \"quoted\" \\ 'single'",
          "not UTF-8: \xFF\xFE",
          std::string_view(with_nul),
          std::string_view(long_text),
          ValueView::json(R"([1, 2.5, null, {"a": "b"}])"),
          ValueView::json(R"({"_type":"histogram","values":[1],"bins":[0,1]})"),
          ValueView::json("")};
}

// Rows that are alike in their keys: column 0 mixes all kinds, the others hold one kind each.
inline RowGroup awkward_group() {
  RowGroup group;
  const std::vector<ValueView> values = awkward_values();
  Column mixed(3);
  Column doubles(70'000);
  Column integers(0);
  Column bools(7);
  Column texts(5);
  Column nulls(6);
  for (std::size_t i = 0; i < values.size(); ++i) {
    group.sequence.push_back(i * i + 1);
    group.step.push_back(i % 2 == 0 ? static_cast<std::int64_t>(i)
                                    : -static_cast<std::int64_t>(i) * 1'000'000);
    group.time_ns.push_back(1'700'000'000'000'000'000 + static_cast<std::int64_t>(i) * 12'345'678);
    mixed.push_back(values[i]);
    doubles.push_back(std::sin(static_cast<double>(i)));
    integers.push_back(static_cast<std::int64_t>(i) << (i % 60));
    bools.push_back(i % 3 == 0);
    texts.push_back(i % 2 == 0 ? "even" : "odd and longer");
    nulls.push_back(nullptr);
  }
  group.step.front() = std::numeric_limits<std::int64_t>::min();
  group.step.back() = std::numeric_limits<std::int64_t>::max();
  group.sequence.back() = std::numeric_limits<std::uint64_t>::max();
  group.columns = {mixed, doubles, integers, bools, texts, nulls};
  return group;
}

inline bool same_columns(const Column& a, const Column& b) {
  if (a.key() != b.key() || a.size() != b.size()) return false;
  for (std::size_t row = 0; row < a.size(); ++row) {
    if (!same_value(a.at(row), b.at(row))) return false;
  }
  return true;
}

inline bool same_group(const RowGroup& a, const RowGroup& b) {
  if (a.sequence != b.sequence || a.step != b.step || a.time_ns != b.time_ns) return false;
  if (a.columns.size() != b.columns.size()) return false;
  for (std::size_t i = 0; i < a.columns.size(); ++i) {
    if (!same_columns(a.columns[i], b.columns[i])) return false;
  }
  return true;
}

}  // namespace ranklog::test
