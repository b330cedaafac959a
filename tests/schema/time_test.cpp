#include "ranklog/schema/time.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace ranklog {
namespace {

TEST(Time, MachineTimesAreUtcWithMilliseconds) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(rfc3339(1'772'370'309'250'000'000), "2026-03-01T13:05:09.250Z");
  EXPECT_EQ(rfc3339(-1'000'000), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(rfc3339(std::numeric_limits<std::int64_t>::max()), "2262-04-11T23:47:16.854Z");
  EXPECT_EQ(rfc3339(std::numeric_limits<std::int64_t>::min()), "1677-09-21T00:12:43.145Z");
}

}  // namespace
}  // namespace ranklog
