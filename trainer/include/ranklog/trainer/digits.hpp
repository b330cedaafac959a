#pragma once
// The 1,797 handwritten digits that come with ranklog, or any file of that form.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "ranklog/schema/error.hpp"

namespace ranklog {

struct Digits {
  static constexpr int kSide = 8;
  static constexpr int kPixels = kSide * kSide;
  static constexpr int kClasses = 10;
  static constexpr int kBrightest = 16;

  std::vector<float> pixels;         // [images, 64], row-major, scaled to 0..1
  std::vector<std::int64_t> labels;  // [images], 0..9

  [[nodiscard]] std::size_t size() const noexcept { return labels.size(); }
};

// A row is 64 pixels (0..16) and the label (0..9), decimal, comma separated; plain or gzip. Throws Error:
// kNotFound or kIo (the file), kUsage (naming file, row and column, and what was expected there).
[[nodiscard]] Digits read_digits(const std::filesystem::path& path);

// The same for every rank, seed and launch: a fixed shuffle, of which the first four fifths are for training.
struct DigitsSplit {
  Digits train;
  Digits test;
};
[[nodiscard]] DigitsSplit split_digits(const Digits& all);

}  // namespace ranklog
