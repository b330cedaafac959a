// Tests that skip themselves in every way that GoogleTest has, for test_script_test.py.
#include <gtest/gtest.h>

TEST(Sky, HasAMoon) {
  GTEST_SKIP() << "it is new moon\nand overcast";
}

TEST(Sky, HasStars) {
  GTEST_SKIP();
}

TEST(Sky, IsUp) {}

class Night : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_SKIP() << "it is day"; }
};

TEST_F(Night, IsDark) {}
