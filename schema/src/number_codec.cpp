#include "number_codec.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

namespace ranklog {
namespace {

// --- On disk, frozen: a column's code byte is view + 8 * prediction.

enum class View : std::uint8_t {
  kPlain = 0,
  kFloat32 = 1,     // every float64 is exactly a float32: its bits
  kDecimal = 2,     // every float64 is exactly m / 10^k: the integers m
  kDictionary = 3,  // indices of the distinct words
  kShifted = 4,     // the lowest t bits of every float64 are 0: the others
};
enum class Prediction : std::uint8_t {
  kNone = 0,
  kDelta1 = 1,  // differences of differences ..., four times at most
  kDelta4 = 4,
  kXor = 5,      // with the word before
  kAverage = 6,  // difference to a moving average
};
constexpr std::size_t kViews = 5;
constexpr std::size_t kPredictions = 7;
constexpr unsigned kAverageShift = 3;  // a new value counts for 1/8

constexpr std::size_t kMaxDictionary = 256;
constexpr unsigned kMaxShift = 63;
constexpr unsigned kLeastShift = 4;  // fewer gain nothing
constexpr std::uint64_t kMaxDecimal = std::uint64_t{1} << 53;
// 10^22 is the greatest power of ten that a float64 holds exactly.
constexpr std::array<double, 23> kPowersOfTen{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

constexpr std::uint8_t code_of(View view, Prediction prediction) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(view) + 8 * static_cast<unsigned>(prediction));
}
constexpr bool has_parameter(View view) {
  return view == View::kDecimal || view == View::kShifted;
}
constexpr View view_of(std::uint8_t code) {
  return static_cast<View>(code & 7);
}
constexpr Prediction prediction_of(std::uint8_t code) {
  return static_cast<Prediction>(code >> 3);
}
// How many words at the beginning are no residuals.
constexpr std::size_t order_of(Prediction prediction) {
  if (prediction == Prediction::kNone) return 0;
  return prediction <= Prediction::kDelta4 ? static_cast<std::size_t>(prediction) : 1;
}

[[noreturn]] void damaged(const char* what) {
  throw Error(ErrorCode::kDamaged, what);
}

// --- Views

// What the words of a view are: integers (0), or the bits of a float, so many of them with the sign on top.
// Differences of bit patterns mean something only if the patterns are ordered as the numbers are.
using Words = unsigned;
constexpr Words kIntegers = 0;

// `parameter`: the byte that comes with some views.
constexpr Words words_of(View view, NumberKind kind, unsigned parameter) {
  if (view == View::kFloat32) return 32;
  if (view == View::kShifted) return 64 - parameter;
  return view == View::kPlain && kind == NumberKind::kFloat64 ? 64 : kIntegers;
}

constexpr std::uint64_t sign_bit(Words words) {
  return std::uint64_t{1} << (words - 1);
}
// Sign and magnitude to an unsigned order: negative numbers first, the greatest magnitude lowest.
constexpr std::uint64_t to_ordered(std::uint64_t bits, Words words) {
  if (words == kIntegers) return bits;
  const std::uint64_t sign = sign_bit(words);
  return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
}
constexpr std::uint64_t from_ordered(std::uint64_t order, Words words) {
  if (words == kIntegers) return order;
  const std::uint64_t sign = sign_bit(words);
  return order & sign ? order ^ sign : ~order & (sign | (sign - 1));
}

// By integers: a program that has denormals flushed to zero, or rounds otherwise, reads and writes the same.
constexpr std::uint64_t float32_to_word(std::uint32_t bits) {
  constexpr std::uint64_t kExponentBias = 1023 - 127;
  constexpr std::uint64_t kLowestExponent = 1023 - 149;  // of the least denormal
  const std::uint64_t sign = std::uint64_t{bits >> 31} << 63;
  const std::uint64_t exponent = bits >> 23 & 0xFF;
  const std::uint64_t fraction = bits & 0x7FFFFF;
  if (exponent == 0xFF) return sign | std::uint64_t{0x7FF} << 52 | fraction << 29;
  if (exponent != 0) return sign | (exponent + kExponentBias) << 52 | fraction << 29;
  if (fraction == 0) return sign;
  const auto highest = static_cast<unsigned>(std::bit_width(fraction) - 1);
  const std::uint64_t rest = fraction ^ std::uint64_t{1} << highest;
  return sign | (kLowestExponent + highest) << 52 | rest << (52 - highest);
}

// Empty if the float64 is no float32.
constexpr std::optional<std::uint32_t> word_to_float32(std::uint64_t word) {
  const auto sign = static_cast<std::uint32_t>(word >> 63) << 31;
  const auto exponent = static_cast<std::int64_t>(word >> 52 & 0x7FF);
  const std::uint64_t fraction = word & 0xFFFFFFFFFFFFF;
  std::uint64_t magnitude = 0;
  if (exponent == 0x7FF) {
    magnitude = std::uint64_t{0xFF} << 23 | fraction >> 29;
  } else if (exponent > 1023 - 127) {
    magnitude = static_cast<std::uint64_t>(exponent - (1023 - 127)) << 23 | fraction >> 29;
  } else if (exponent >= 1023 - 149) {
    magnitude = (fraction | std::uint64_t{1} << 52) >> (1023 - 149 + 52 - exponent);
  }
  const auto bits = static_cast<std::uint32_t>(magnitude) | sign;
  if (magnitude > 0x7FFFFFFF || float32_to_word(bits) != word) return std::nullopt;
  return bits;
}

bool view_as_float32(std::span<const std::uint64_t> words, std::vector<std::uint64_t>& view) {
  view.resize(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto bits = word_to_float32(words[i]);
    if (!bits) return false;
    view[i] = *bits;
  }
  return true;
}

// Decimals are made and read by arithmetic of the default mode, whatever mode the caller is in.
class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::feholdexcept(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&callers_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t callers_;
};

bool view_as_decimal(std::span<const std::uint64_t> words, unsigned decimals,
                     std::vector<std::uint64_t>& view) {
  const double scale = kPowersOfTen[decimals];
  view.resize(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const double scaled = std::nearbyint(std::bit_cast<double>(words[i]) * scale);
    if (!(std::abs(scaled) < static_cast<double>(kMaxDecimal))) return false;
    const auto integer = static_cast<std::int64_t>(scaled);
    if (std::bit_cast<std::uint64_t>(static_cast<double>(integer) / scale) != words[i]) return false;
    view[i] = static_cast<std::uint64_t>(integer);
  }
  return true;
}

// Bits that are 0 at the lower end of all words: many in means and medians of float32s.
unsigned common_shift(std::span<const std::uint64_t> words) {
  std::uint64_t used = 0;
  for (const std::uint64_t word : words) used |= word;
  return std::min(static_cast<unsigned>(std::countr_zero(used)), kMaxShift);
}

bool view_as_shifted(std::span<const std::uint64_t> words, unsigned shift, std::vector<std::uint64_t>& view) {
  if (common_shift(words) < shift) return false;
  view.resize(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) view[i] = words[i] >> shift;
  return true;
}

// The fewest decimals that hold all values, found with a few of them first.
std::optional<unsigned> find_decimals(std::span<const std::uint64_t> words) {
  constexpr std::size_t kSample = 8;
  std::vector<std::uint64_t> sample, ignored;
  for (std::size_t i = 0; i < kSample; ++i) sample.push_back(words[i * (words.size() - 1) / kSample]);
  for (unsigned decimals = 0; decimals < kPowersOfTen.size(); ++decimals) {
    if (view_as_decimal(sample, decimals, ignored) && view_as_decimal(words, decimals, ignored)) {
      return decimals;
    }
  }
  return std::nullopt;
}

struct Dictionary {
  std::vector<std::uint64_t> words;    // distinct, in order of appearance
  std::vector<std::uint64_t> indices;  // one a value
};

std::optional<Dictionary> make_dictionary(std::span<const std::uint64_t> words) {
  Dictionary dictionary;
  std::unordered_map<std::uint64_t, std::uint64_t> index_of;
  dictionary.indices.reserve(words.size());
  for (const std::uint64_t word : words) {
    const auto [entry, is_new] = index_of.try_emplace(word, index_of.size());
    if (is_new) {
      if (index_of.size() > kMaxDictionary || index_of.size() > words.size() / 4) return std::nullopt;
      dictionary.words.push_back(word);
    }
    dictionary.indices.push_back(entry->second);
  }
  return dictionary;
}

// --- Predictions: in place, from the words of a view to residuals and back.

std::uint64_t shift_right_signed(std::uint64_t value, unsigned shift) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value) >> shift);
}

void predict(std::span<std::uint64_t> words, Words what, Prediction prediction) {
  if (prediction == Prediction::kXor) {
    for (std::size_t i = words.size(); i-- > 1;) words[i] ^= words[i - 1];
    return;
  }
  if (prediction != Prediction::kNone) {
    for (std::uint64_t& word : words) word = to_ordered(word, what);
  }
  if (prediction == Prediction::kAverage) {
    std::uint64_t average = words.empty() ? 0 : words.front();
    for (std::uint64_t& word : words.subspan(std::min<std::size_t>(1, words.size()))) {
      word -= average;
      average += shift_right_signed(word, kAverageShift);
    }
  } else {
    for (std::size_t pass = 1; pass <= order_of(prediction); ++pass) {
      for (std::size_t i = words.size(); i-- > pass;) words[i] -= words[i - 1];
    }
  }
  if (prediction == Prediction::kNone && what != kIntegers) return;
  for (std::uint64_t& word : words) word = zigzag(word);
}

void restore(std::span<std::uint64_t> words, Words what, Prediction prediction) {
  if (prediction == Prediction::kXor) {
    for (std::size_t i = 1; i < words.size(); ++i) words[i] ^= words[i - 1];
    return;
  }
  if (prediction == Prediction::kNone && what != kIntegers) return;
  for (std::uint64_t& word : words) word = unzigzag(word);
  if (prediction == Prediction::kNone) return;
  if (prediction == Prediction::kAverage) {
    std::uint64_t average = words.empty() ? 0 : words.front();
    for (std::uint64_t& word : words.subspan(std::min<std::size_t>(1, words.size()))) {
      const std::uint64_t residual = word;
      word += average;
      average += shift_right_signed(residual, kAverageShift);
    }
  } else {
    for (std::size_t pass = order_of(prediction); pass > 0; --pass) {
      for (std::size_t i = pass; i < words.size(); ++i) words[i] += words[i - 1];
    }
  }
  for (std::uint64_t& word : words) word = from_ordered(word, what);
}

// --- Byte planes

// Plain pointers: a compiler makes vector instructions of it.
void take_plane(const std::uint64_t* from, std::size_t count, unsigned shift, char* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<char>(from[i] >> shift);
}

void append_planes(std::string& out, std::span<const std::uint64_t> residuals, Packing packing) {
  std::uint64_t used = 0;
  for (const std::uint64_t residual : residuals) used |= residual;
  const auto planes = static_cast<unsigned>((std::bit_width(used) + 7) / 8);
  append_fixed(out, static_cast<std::uint8_t>(planes));
  thread_local std::string plane;
  plane.resize(residuals.size());
  for (unsigned shift = 0; shift < 8 * planes; shift += 8) {
    take_plane(residuals.data(), residuals.size(), shift, plane.data());
    append_stream(out, plane, packing);
  }
}

void add_plane(const char* from, std::size_t count, unsigned shift, std::uint64_t* to) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[i])) << shift;
  }
}

void read_planes(ByteReader& in, std::span<std::uint64_t> residuals) {
  const auto planes = in.fixed<std::uint8_t>();
  if (planes > sizeof(std::uint64_t)) damaged("a number has more than eight bytes");
  std::ranges::fill(residuals, 0);
  thread_local std::string plane;
  plane.resize(residuals.size());
  for (unsigned shift = 0; shift < 8u * planes; shift += 8) {
    read_stream(in, plane);
    add_plane(plane.data(), residuals.size(), shift, residuals.data());
  }
}

// --- A whole column, written in one way

void append_view(std::string& out, std::span<const std::uint64_t> view, Words what, Prediction prediction,
                 Packing packing) {
  thread_local std::vector<std::uint64_t> words;
  words.assign(view.begin(), view.end());
  predict(words, what, prediction);
  const std::span<const std::uint64_t> all(words);
  const std::size_t order = std::min(order_of(prediction), all.size());
  for (const std::uint64_t word : all.first(order)) append_varint(out, word);
  append_planes(out, all.subspan(order), packing);
}

// Tries ways to write one column and keeps the shortest.
class Search {
 public:
  Search(std::span<const std::uint64_t> words, NumberKind kind, Packing packing)
      : words_(words), kind_(kind), packing_(packing) {}

  // False if this way is not possible.
  bool try_choice(NumberChoice choice) {
    const View view = view_of(choice.code);
    if (view == View::kFloat32) {
      return kind_ == NumberKind::kFloat64 && view_as_float32(words_, view_) && keep(choice, view_);
    }
    if (view == View::kDecimal) {
      return kind_ == NumberKind::kFloat64 && view_as_decimal(words_, choice.parameter, view_) &&
             keep(choice, view_);
    }
    if (view == View::kShifted) {
      return kind_ == NumberKind::kFloat64 && view_as_shifted(words_, choice.parameter, view_) &&
             keep(choice, view_);
    }
    if (view == View::kDictionary) return try_dictionary(choice);
    return keep(choice, words_);
  }

  void try_all() {
    try_predictions(View::kPlain, 0, words_);
    if (kind_ == NumberKind::kFloat64) {
      if (view_as_float32(words_, view_)) try_predictions(View::kFloat32, 0, view_);
      if (const auto decimals = find_decimals(words_)) {
        (void)view_as_decimal(words_, *decimals, view_);
        try_predictions(View::kDecimal, *decimals, view_);
      }
      const unsigned shift = common_shift(words_);
      if (shift >= kLeastShift && view_as_shifted(words_, shift, view_)) {
        try_predictions(View::kShifted, shift, view_);
      }
    }
    try_dictionary({code_of(View::kDictionary, Prediction::kNone), 0, true});
  }

  [[nodiscard]] const std::string& best() const noexcept { return best_; }
  [[nodiscard]] NumberChoice choice() const noexcept { return choice_; }

 private:
  void try_predictions(View view, unsigned parameter, std::span<const std::uint64_t> numbers) {
    for (std::size_t prediction = 0; prediction < kPredictions; ++prediction) {
      keep({code_of(view, static_cast<Prediction>(prediction)), static_cast<std::uint8_t>(parameter), true},
           numbers);
    }
  }

  bool try_dictionary(NumberChoice choice) {
    const auto dictionary = make_dictionary(words_);
    if (!dictionary) return false;
    attempt_.clear();
    append_fixed(attempt_, choice.code);
    append_varint(attempt_, dictionary->words.size());
    for (const std::uint64_t word : dictionary->words) append_fixed(attempt_, word);
    append_view(attempt_, dictionary->indices, kIntegers, prediction_of(choice.code), packing_);
    keep_shorter(choice);
    return true;
  }

  bool keep(NumberChoice choice, std::span<const std::uint64_t> numbers) {
    const View view = view_of(choice.code);
    attempt_.clear();
    append_fixed(attempt_, choice.code);
    if (has_parameter(view)) append_fixed(attempt_, choice.parameter);
    append_view(attempt_, numbers, words_of(view, kind_, choice.parameter), prediction_of(choice.code),
                packing_);
    keep_shorter(choice);
    return true;
  }

  void keep_shorter(NumberChoice choice) {
    if (!best_.empty() && attempt_.size() >= best_.size()) return;
    best_.swap(attempt_);
    choice_ = choice;
  }

  std::span<const std::uint64_t> words_;
  NumberKind kind_;
  Packing packing_;
  std::vector<std::uint64_t> view_;
  std::string attempt_, best_;
  NumberChoice choice_;
};

void read_view(ByteReader& in, std::span<std::uint64_t> words, Words what, Prediction prediction) {
  const std::size_t order = std::min(order_of(prediction), words.size());
  for (std::uint64_t& word : words.first(order)) word = in.varint();
  read_planes(in, words.subspan(order));
  restore(words, what, prediction);
}

void widen_float32s(std::span<std::uint64_t> words) {
  for (std::uint64_t& word : words) {
    if (word > std::numeric_limits<std::uint32_t>::max()) damaged("a float32 has more than four bytes");
    word = float32_to_word(static_cast<std::uint32_t>(word));
  }
}

void divide_decimals(std::span<std::uint64_t> words, unsigned decimals) {
  const DefaultArithmetic arithmetic;
  for (std::uint64_t& word : words) {
    const double value = static_cast<double>(static_cast<std::int64_t>(word)) / kPowersOfTen[decimals];
    word = std::bit_cast<std::uint64_t>(value);
  }
}

std::vector<std::uint64_t> read_dictionary(ByteReader& in) {
  const std::uint64_t size = in.varint();
  if (size == 0 || size > kMaxDictionary) damaged("a dictionary of a wrong size");
  std::vector<std::uint64_t> dictionary(size);
  for (std::uint64_t& word : dictionary) word = in.fixed<std::uint64_t>();
  return dictionary;
}

void look_up(std::span<std::uint64_t> words, std::span<const std::uint64_t> dictionary) {
  for (std::uint64_t& word : words) {
    if (word >= dictionary.size()) damaged("an index beyond its dictionary");
    word = dictionary[word];
  }
}

}  // namespace

void append_numbers(std::string& out, std::span<const std::uint64_t> words, NumberKind kind, Packing packing,
                    NumberChoice& choice) {
  if (words.empty()) return;
  const DefaultArithmetic arithmetic;
  Search search(words, kind, packing);
  if (!choice.known || !search.try_choice(choice)) search.try_all();
  choice = search.choice();
  out += search.best();
}

void read_numbers(ByteReader& in, std::span<std::uint64_t> words, NumberKind kind) {
  if (words.empty()) return;
  const auto code = in.fixed<std::uint8_t>();
  const View view = view_of(code);
  const Prediction prediction = prediction_of(code);
  if (static_cast<std::size_t>(view) >= kViews || static_cast<std::size_t>(prediction) >= kPredictions) {
    damaged("unknown encoding of numbers");
  }
  if (kind == NumberKind::kInteger && view != View::kPlain && view != View::kDictionary) {
    damaged("integers in an encoding of floats");
  }
  const unsigned parameter = has_parameter(view) ? in.fixed<std::uint8_t>() : 0;
  switch (view) {
    case View::kPlain:
      return read_view(in, words, words_of(view, kind, parameter), prediction);
    case View::kFloat32:
      read_view(in, words, words_of(view, kind, parameter), prediction);
      return widen_float32s(words);
    case View::kDecimal:
      if (parameter >= kPowersOfTen.size()) damaged("too many decimals");
      read_view(in, words, kIntegers, prediction);
      return divide_decimals(words, parameter);
    case View::kDictionary: {
      const std::vector<std::uint64_t> dictionary = read_dictionary(in);
      read_view(in, words, kIntegers, prediction);
      return look_up(words, dictionary);
    }
    case View::kShifted:
      if (parameter > kMaxShift) damaged("more bits than a float has");
      read_view(in, words, words_of(view, kind, parameter), prediction);
      for (std::uint64_t& word : words) word <<= parameter;
      return;
  }
}

}  // namespace ranklog
