#include "crc32c.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ranklog {
namespace {

// Test vectors of RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, AgreesWithTheRfc) {
  std::string ascending;
  for (char byte = 0; byte < 32; ++byte) ascending += byte;
  EXPECT_EQ(crc32c_of(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c_of(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c_of(ascending), 0x46DD794Eu);
  EXPECT_EQ(crc32c_of("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c_of(""), 0u);
}

TEST(Crc32c, InstructionAndTableAgreeAtEveryLength) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(crc32c_of(bytes), crc32c_by_table(bytes)) << i;
    bytes += static_cast<char>(i * 37);
  }
}

}  // namespace
}  // namespace ranklog
