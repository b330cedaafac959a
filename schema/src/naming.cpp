#include "ranklog/schema/naming.hpp"

#include <algorithm>
#include <charconv>

#include "ranklog/schema/digest.hpp"

namespace ranklog {
namespace {

constexpr std::string_view kPrefix = "rank-";
constexpr std::string_view kSuffix = ".db";

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  return std::nullopt;
}

std::optional<int> parse_number(std::string_view digits) {
  int number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

std::filesystem::path default_log_folder(
    const std::function<std::optional<std::string>(std::string_view name)>& lookup) {
  if (const auto ours = lookup("RANKLOG_DIR"); ours && !ours->empty()) return *ours;
  if (const auto theirs = lookup("WANDB_DIR"); theirs && !theirs->empty()) {
    return std::filesystem::path(*theirs) / "ranklog";
  }
  return "ranklog";
}

std::string encode_file_name(std::string_view name) {
  // A lone '%' stands for the empty name, which no file can have.
  if (name.empty()) return "%";
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    if (byte == '/' || byte == '%' || byte < 0x20 || byte == 0x7F || (byte == '.' && i == 0)) {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += name[i];
    }
  }
  return out;
}

std::string decode_file_name(std::string_view encoded) {
  if (encoded == "%") return {};
  std::string out;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] == '%' && i + 2 < encoded.size()) {
      const auto high = hex_digit(encoded[i + 1]);
      const auto low = hex_digit(encoded[i + 2]);
      if (high && low) {
        out += static_cast<char>(*high * 16 + *low);
        i += 2;
        continue;
      }
    }
    out += encoded[i];
  }
  return out;
}

std::filesystem::path experiment_folder(const std::filesystem::path& log_dir, std::string_view project,
                                        std::string_view experiment) {
  return log_dir / encode_file_name(project) / encode_file_name(experiment);
}

std::string rank_file_name(int rank, int number) {
  std::string digits = std::to_string(rank);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  std::string name = std::string(kPrefix) + digits;
  if (number != 0) name += "." + std::to_string(number);
  return name + std::string(kSuffix);
}

std::optional<RankFileName> parse_rank_file_name(std::string_view file_name) {
  std::string_view rest = file_name;
  if (!rest.starts_with(kPrefix) || !rest.ends_with(kSuffix)) return std::nullopt;
  rest.remove_prefix(kPrefix.size());
  if (rest.size() < kSuffix.size()) return std::nullopt;
  rest.remove_suffix(kSuffix.size());
  const auto dot = rest.find('.');
  const auto rank = parse_number(rest.substr(0, dot));
  const auto number = dot == std::string_view::npos ? 0 : parse_number(rest.substr(dot + 1));
  if (!rank || !number || *rank < 0 || *number < 0) return std::nullopt;
  // One name a (rank, number): "rank-3.db" and "rank-00003.0.db" are somebody else's.
  if (rank_file_name(*rank, *number) != file_name) return std::nullopt;
  return RankFileName{*rank, *number};
}

std::filesystem::path tail_segment_path(const std::filesystem::path& rank_file, unsigned index) {
  std::filesystem::path path = rank_file;
  return path.replace_extension(".tail." + std::to_string(index));
}

std::string artifact_name(std::string_view name) {
  constexpr std::size_t kLongest = 128;
  constexpr std::size_t kDigits = 8;
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  std::string out(name);
  if (out.size() <= kLongest && std::ranges::all_of(out, is_fine)) return out;
  std::ranges::replace_if(out, [&](char c) { return !is_fine(c); }, '-');
  out.resize(std::min(out.size(), kLongest - kDigits - 1));
  return out + "-" + sha256_hex(name).substr(0, kDigits);
}

}  // namespace ranklog
