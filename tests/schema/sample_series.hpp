#pragma once
// Series that between them use every way to write a column: data that suit it, and data that nearly do.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>

#include "ranklog/schema/row_group.hpp"

namespace ranklog::test {

struct Series {
  const char* name;
  ValueView (*value)(std::size_t row, std::mt19937_64& random);
};

inline double uniform(std::mt19937_64& random) {
  return std::uniform_real_distribution<double>()(random);
}

inline const Series kSeries[] = {
    {"constant", [](std::size_t, std::mt19937_64&) { return ValueView(0.1); }},
    {"linear integers",
     [](std::size_t row, std::mt19937_64&) { return ValueView(1000 * static_cast<std::int64_t>(row)); }},
    {"any bits",
     [](std::size_t, std::mt19937_64& random) { return ValueView::scalar(ValueKind::kFloat64, random()); }},
    {"any integers",
     [](std::size_t, std::mt19937_64& random) { return ValueView(static_cast<std::int64_t>(random())); }},
    {"float32",
     [](std::size_t, std::mt19937_64& random) {
       return ValueView(static_cast<double>(static_cast<float>(uniform(random) - 0.5)));
     }},
    {"float32 with infinities and NaN",
     [](std::size_t row, std::mt19937_64& random) {
       if (row % 7 == 0) return ValueView(std::numeric_limits<double>::infinity());
       if (row % 7 == 1) return ValueView(std::numeric_limits<double>::quiet_NaN());
       return ValueView(static_cast<double>(static_cast<float>(uniform(random))));
     }},
    {"means of float32s",
     [](std::size_t, std::mt19937_64& random) {
       double sum = 0;
       for (int i = 0; i < 8; ++i)
         sum += std::bit_cast<float>(0x40000000u + static_cast<std::uint32_t>(random() % 0x400000));
       return ValueView(sum / 8);
     }},
    {"decimals",
     [](std::size_t, std::mt19937_64& random) {
       return ValueView(std::round(uniform(random) * 1e4 - 5e3) / 1e3);
     }},
    {"decimals and one -0.0",
     [](std::size_t row, std::mt19937_64& random) {
       return ValueView(row == 5 ? -0.0 : std::round(uniform(random) * 1e3) / 1e2);
     }},
    {"tiny decimals",
     [](std::size_t row, std::mt19937_64&) { return ValueView(static_cast<double>(row) / 1e21); }},
    {"great decimals",
     [](std::size_t row, std::mt19937_64&) {
       return ValueView(9007199254740990.0 + static_cast<double>(row));
     }},
    {"smooth",
     [](std::size_t row, std::mt19937_64&) { return ValueView(std::cos(static_cast<double>(row) / 1e3)); }},
    {"smooth through zero",
     [](std::size_t row, std::mt19937_64&) { return ValueView(1e-3 * static_cast<double>(row) - 0.5); }},
    {"noise", [](std::size_t, std::mt19937_64& random) { return ValueView(2 + 0.1 * uniform(random)); }},
    {"few values",
     [](std::size_t, std::mt19937_64& random) {
       return ValueView(std::sqrt(static_cast<double>(random() % 9)));
     }},
    {"few integers",
     [](std::size_t, std::mt19937_64& random) {
       return ValueView(static_cast<std::int64_t>(random() % 3) << 40);
     }},
    {"denormals",
     [](std::size_t, std::mt19937_64& random) {
       return ValueView::scalar(ValueKind::kFloat64, random() % 4096);
     }},
    {"bools", [](std::size_t, std::mt19937_64& random) { return ValueView(random() % 2 == 0); }},
    {"few texts", [](std::size_t row, std::mt19937_64&) { return ValueView(row % 3 == 0 ? "a" : ""); }},
    {"nulls and numbers",
     [](std::size_t row, std::mt19937_64& random) {
       return row % 5 == 0 ? ValueView(nullptr) : ValueView(uniform(random));
     }},
};

// One series, logged at every step.
inline RowGroup group_of(const Series& series, std::size_t rows, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RowGroup group;
  Column column(0);
  for (std::size_t row = 0; row < rows; ++row) {
    group.sequence.push_back(row + 1);
    group.step.push_back(static_cast<std::int64_t>(row));
    group.time_ns.push_back(static_cast<std::int64_t>(row) * 1'000'000);
    column.push_back(series.value(row, random));
  }
  group.columns = {column};
  return group;
}

}  // namespace ranklog::test
