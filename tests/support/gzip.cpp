#include "gzip.hpp"

#include <zlib.h>

#include <array>
#include <stdexcept>

namespace ranklog::test {

std::string read_gzip_file(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path.string());
  std::string content;
  std::array<char, 1 << 16> buffer;
  int got = 0;
  while ((got = gzread(file, buffer.data(), buffer.size())) > 0) {
    content.append(buffer.data(), static_cast<std::size_t>(got));
  }
  const bool whole = gzclose(file) == Z_OK && got == 0;
  if (!whole) throw std::runtime_error("cannot read " + path.string());
  return content;
}

}  // namespace ranklog::test
