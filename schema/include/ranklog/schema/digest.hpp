#pragma once
// MD5 (W&B's artifact digests) and SHA-256 of bytes and files, by OpenSSL's libcrypto.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace ranklog {

struct FileDigests {
  std::uint64_t size = 0;  // bytes
  std::string md5;         // 32 lower-case hex digits
  std::string sha256;      // 64 lower-case hex digits
};

// Both digests in one pass, as bytes stream by.
class DigestStream {
 public:
  DigestStream();
  ~DigestStream();
  void update(const void* data, std::size_t bytes);
  [[nodiscard]] FileDigests finish();  // once

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads the file once. Throws Error (kNotFound, kIo) naming it.
[[nodiscard]] FileDigests digest_file(const std::filesystem::path& path);

[[nodiscard]] std::string md5_hex(std::string_view bytes);
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

// Standard base64 with padding; and of the bytes that a hex text stands for.
[[nodiscard]] std::string base64(std::string_view bytes);
[[nodiscard]] std::string base64_of_hex(std::string_view hex);

}  // namespace ranklog
