#include "ranklog/cli/format.hpp"

#include <gtest/gtest.h>

#include <limits>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>

namespace ranklog::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Format, CountsAreGroupedByThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
}

TEST(Format, SizesChangeUnitWhereRoundingDoes) {
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1024), "1.0 KiB");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(format_size(std::uint64_t{5} << 40), "5.0 TiB");
}

TEST(Format, DurationsNeverShowSixtySeconds) {
  EXPECT_EQ(format_duration(420'000'000), "420 ms");
  EXPECT_EQ(format_duration(999'700'000), "1.0 s");
  EXPECT_EQ(format_duration(59'960'000'000), "1m 00s");
  EXPECT_EQ(format_duration(245'000'000'000), "4m 05s");
  EXPECT_EQ(format_duration(3'599'600'000'000), "1h 00m");
  EXPECT_EQ(format_duration(26LL * 3600 * 1'000'000'000), "1d 02h");
  EXPECT_EQ(format_duration(-5'000'000'000), "-5.0 s");
}

TEST(Format, DoublesReadBackToTheSameBits) {
  for (const double value : {0.1, 1.0 / 3, 1e300, 5e-324, -0.0, 123456789.0}) {
    EXPECT_EQ(std::strtod(format_double(value).c_str(), nullptr), value);
  }
  EXPECT_EQ(format_double(0.1), "0.1");
  EXPECT_EQ(format_double(std::nan("")), "NaN");
  EXPECT_EQ(format_double(-kInfinity), "-Infinity");
}

TEST(Format, OneIsSingular) {
  EXPECT_EQ(plural(1, "point"), "1 point");
  EXPECT_EQ(plural(1800, "point"), "1,800 points");
}

TEST(Format, DamagedTimesAreFormattedToo) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(format_duration(kLeast), "-" + format_duration(kGreatest));
  EXPECT_EQ(time_between(kLeast, kGreatest), kGreatest);
  EXPECT_EQ(time_between(kGreatest, kLeast), -kGreatest);
  EXPECT_EQ(time_between(3, 5), 2);
}

}  // namespace
}  // namespace ranklog::cli
