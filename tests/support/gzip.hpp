#pragma once
// What gzip(1) made, read whole.

#include <filesystem>
#include <string>

namespace ranklog::test {

[[nodiscard]] std::string read_gzip_file(const std::filesystem::path& path);

}  // namespace ranklog::test
