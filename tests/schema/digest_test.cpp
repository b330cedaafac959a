#include "ranklog/schema/digest.hpp"

#include <gtest/gtest.h>

#include "ranklog/schema/error.hpp"
#include "support/temp_dir.hpp"

namespace ranklog {
namespace {

// Expected values from RFC 1321, FIPS 180-4 and RFC 4648.
TEST(Digest, MatchesThePublishedTestVectors) {
  EXPECT_EQ(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, Base64MatchesRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xFB\xFF"), "+/8=");
  EXPECT_EQ(base64_of_hex("666f6f"), "Zm9v");
  EXPECT_EQ(base64_of_hex(""), "");
  EXPECT_THROW((void)base64_of_hex("6"), Error);
  EXPECT_THROW((void)base64_of_hex("zz"), Error);
}

TEST(Digest, OfAFileEqualsThatOfItsBytes) {
  const test::TempDir folder;
  std::string bytes(1'000'003, 'x');
  for (std::size_t i = 0; i < bytes.size(); i += 7) bytes[i] = static_cast<char>(i);
  test::write_file(folder / "big", bytes);
  const FileDigests digests = digest_file(folder / "big");
  EXPECT_EQ(digests.size, bytes.size());
  EXPECT_EQ(digests.md5, md5_hex(bytes));
  EXPECT_EQ(digests.sha256, sha256_hex(bytes));

  DigestStream stream;
  stream.update(bytes.data(), 5);
  stream.update(bytes.data() + 5, bytes.size() - 5);
  EXPECT_EQ(stream.finish().sha256, digests.sha256);
}

TEST(Digest, MissingFileIsNamed) {
  const test::TempDir folder;
  try {
    (void)digest_file(folder / "absent");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("absent"), std::string::npos);
  }
  try {
    (void)digest_file(folder.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
  }
}

}  // namespace
}  // namespace ranklog
