#pragma once
// Where the bytes of a request come from, piece by piece.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "ranklog/schema/digest.hpp"
#include "ranklog/sync/transport.hpp"

namespace ranklog::sync {

class BodySource {
 public:
  explicit BodySource(const HttpRequest& request) : request_(request) {}

  // Opens the file, if it is one, and checks its size. False: see fault().
  [[nodiscard]] bool open();
  [[nodiscard]] std::uint64_t size() const noexcept;
  // Copies up to `limit` bytes; 0 at the end. Empty: see fault().
  [[nodiscard]] std::optional<std::size_t> read(char* out, std::size_t limit);
  [[nodiscard]] bool rewind();
  [[nodiscard]] std::uint64_t sent() const noexcept { return position_; }
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

 private:
  struct FileClose {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  [[nodiscard]] std::optional<std::size_t> read_file(char* out, std::size_t limit);
  [[nodiscard]] bool digest_matches();

  const HttpRequest& request_;
  std::unique_ptr<std::FILE, FileClose> file_;
  std::optional<DigestStream> digest_;
  std::uint64_t position_ = 0;
  std::string fault_;
};

}  // namespace ranklog::sync
