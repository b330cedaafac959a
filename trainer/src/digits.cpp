#include "ranklog/trainer/digits.hpp"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>

#include "ranklog/trainer/sampler.hpp"

namespace ranklog {
namespace {

constexpr int kColumns = Digits::kPixels + 1;

using GzipFile = std::unique_ptr<gzFile_s, decltype(&gzclose)>;

[[noreturn]] void fail_to_read(const std::filesystem::path& path, const std::string& why,
                               ErrorCode code = ErrorCode::kIo) {
  throw Error(code, "cannot read the data file '" + path.string() + "': " + why);
}

// gzopen reads plain files as they are.
GzipFile open_data(const std::filesystem::path& path) {
  GzipFile file(gzopen(path.c_str(), "rbe"), &gzclose);
  if (file) return file;
  if (errno == ENOENT) {
    throw Error(ErrorCode::kNotFound, "the data file '" + path.string() + "' does not exist",
                "give one with --data (rows of 64 pixels 0..16 and a label 0..9, .csv or .csv.gz)");
  }
  fail_to_read(path, errno_text(errno));
}

std::string read_all(const std::filesystem::path& path) {
  const GzipFile file = open_data(path);
  std::string text;
  std::array<char, 1 << 16> buffer{};
  int got = 0;
  while ((got = gzread(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int status = Z_OK;
  const char* why = gzerror(file.get(), &status);
  if (status == Z_ERRNO)
    fail_to_read(path, errno_text(errno), errno == EISDIR ? ErrorCode::kUsage : ErrorCode::kIo);
  if (status != Z_OK && status != Z_STREAM_END) {
    fail_to_read(path, "damaged or cut off gzip data" + (why[0] ? " (" + std::string(why) + ")" : ""),
                 ErrorCode::kUsage);
  }
  return text;
}

// Where in the file something is not as it must be. Rows and columns count from 1, as editors do.
struct Cell {
  const std::filesystem::path& path;
  std::size_t row = 0;
  int column = 0;
};

[[noreturn]] void refuse(const Cell& cell, const std::string& found, const std::string& expected) {
  throw Error(ErrorCode::kUsage, "data file '" + cell.path.string() + "', row " + std::to_string(cell.row) +
                                     ", column " + std::to_string(cell.column) + ": found " + found +
                                     ", expected " + expected);
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 20;
  return "'" + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "") + "'";
}

int parse_value(std::string_view text, const Cell& cell) {
  const bool is_label = cell.column == kColumns;
  const int high = is_label ? Digits::kClasses - 1 : Digits::kBrightest;
  int value = -1;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stop != end || value < 0 || value > high) {
    refuse(cell, quoted(text),
           std::string(is_label ? "a label" : "a pixel") + " from 0 to " + std::to_string(high));
  }
  return value;
}

void parse_row(std::string_view row, Cell cell, Digits& digits) {
  for (cell.column = 1; cell.column <= kColumns; ++cell.column) {
    const std::size_t comma = row.find(',');
    const int value = parse_value(row.substr(0, comma), cell);
    if (comma == std::string_view::npos && cell.column < kColumns) {
      refuse({cell.path, cell.row, cell.column + 1}, "the end of the row",
             std::to_string(kColumns) + " values");
    }
    if (cell.column == kColumns) {
      digits.labels.push_back(value);
    } else {
      digits.pixels.push_back(static_cast<float>(value) / Digits::kBrightest);
    }
    row.remove_prefix(comma == std::string_view::npos ? row.size() : comma + 1);
    if (cell.column == kColumns && comma != std::string_view::npos) {
      refuse({cell.path, cell.row, cell.column + 1}, quoted(row), "the end of the row");
    }
  }
}

void append_image(const Digits& from, std::size_t index, Digits& to) {
  const auto first = from.pixels.begin() + static_cast<std::ptrdiff_t>(index * Digits::kPixels);
  to.pixels.insert(to.pixels.end(), first, first + Digits::kPixels);
  to.labels.push_back(from.labels[index]);
}

}  // namespace

Digits read_digits(const std::filesystem::path& path) {
  const std::string text = read_all(path);
  std::string_view rest = text;
  Digits digits;
  for (std::size_t row = 1; !rest.empty(); ++row) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    parse_row(line, {path, row}, digits);
  }
  if (digits.size() == 0) {
    throw Error(ErrorCode::kUsage, "the data file '" + path.string() + "' holds no rows");
  }
  return digits;
}

DigitsSplit split_digits(const Digits& all) {
  constexpr std::uint64_t kSplitSeed = 20240229;  // any number; changing it changes every result
  const std::vector<std::size_t> order = shuffled_indices(all.size(), kSplitSeed);
  const std::size_t test_size = all.size() / 5;
  DigitsSplit split;
  for (std::size_t i = 0; i < order.size(); ++i) {
    append_image(all, order[i], i < order.size() - test_size ? split.train : split.test);
  }
  return split;
}

}  // namespace ranklog
