#include "ranklog/schema/digest.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "file.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;

void check(int result, const char* what) {
  if (result != 1) {
    throw Error(ErrorCode::kIo, std::string("libcrypto refuses ") + what,
                "a FIPS policy that forbids MD5 is the usual reason");
  }
}

std::string to_hex(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    out += kHex[bytes[i] >> 4];
    out += kHex[bytes[i] & 15];
  }
  return out;
}

class Hash {
 public:
  Hash(const EVP_MD* algorithm, const char* name) : name_(name), context_(EVP_MD_CTX_new()) {
    if (!context_) throw std::bad_alloc();
    check(EVP_DigestInit_ex(context_.get(), algorithm, nullptr), name_);
  }
  void update(const void* data, std::size_t bytes) {
    check(EVP_DigestUpdate(context_.get(), data, bytes), name_);
  }
  std::string finish_hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned length = 0;
    check(EVP_DigestFinal_ex(context_.get(), digest.data(), &length), name_);
    return to_hex(digest.data(), length);
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  const char* name_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

struct DigestStream::Impl {
  Hash md5{EVP_md5(), "MD5"};
  Hash sha256{EVP_sha256(), "SHA-256"};
  std::uint64_t size = 0;
};

DigestStream::DigestStream() : impl_(std::make_unique<Impl>()) {}
DigestStream::~DigestStream() = default;

void DigestStream::update(const void* data, std::size_t bytes) {
  impl_->md5.update(data, bytes);
  impl_->sha256.update(data, bytes);
  impl_->size += bytes;
}

FileDigests DigestStream::finish() {
  return FileDigests{impl_->size, impl_->md5.finish_hex(), impl_->sha256.finish_hex()};
}

FileDigests digest_file(const std::filesystem::path& path) {
  const FileDescriptor file = open_for_reading(path);
  DigestStream digests;
  std::vector<char> buffer(kReadBytes);
  for (;;) {
    const ssize_t got = read_some(file, buffer.data(), buffer.size(), path);
    if (got == 0) return digests.finish();
    digests.update(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::string md5_hex(std::string_view bytes) {
  Hash hash(EVP_md5(), "MD5");
  hash.update(bytes.data(), bytes.size());
  return hash.finish_hex();
}

std::string sha256_hex(std::string_view bytes) {
  Hash hash(EVP_sha256(), "SHA-256");
  hash.update(bytes.data(), bytes.size());
  return hash.finish_hex();
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= count ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

std::string base64_of_hex(std::string_view hex) {
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = hex_value(hex[i]);
    const int low = i + 1 < hex.size() ? hex_value(hex[i + 1]) : -1;
    if (high < 0 || low < 0) {
      throw Error(ErrorCode::kUsage, "'" + std::string(hex) + "' is not a text of hexadecimal byte pairs");
    }
    bytes += static_cast<char>(high * 16 + low);
  }
  return base64(bytes);
}

}  // namespace ranklog
