#include "buried_lines.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "disk.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "ranklog/schema/tail.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

// Beyond any that a writer counts to.
constexpr unsigned kFirstSegment = 1'000'000'000;
constexpr std::uint64_t kFirstSequence = std::uint64_t{1} << 62;

struct ConsoleKeys {
  KeyId text = 0, is_stderr = 0;
};

// The numbers that the log has for them, else free ones.
ConsoleKeys console_keys(const RankFile& file) {
  auto next = static_cast<KeyId>(file.keys().size());
  const auto number_of = [&](const char* name) {
    const auto& keys = file.keys();
    const auto found = std::find(keys.begin(), keys.end(), KeyPath::flat(name));
    return found == keys.end() ? next++ : static_cast<KeyId>(found - keys.begin());
  };
  const KeyId text = number_of("text");
  return {text, number_of("stderr")};
}

std::string encode(const ConsoleKeys& keys, int rank, std::string_view launch_token,
                   const std::vector<ConsoleLine>& lines) {
  std::string bytes = encode_tail_header(launch_token, rank);
  append_key_record(bytes, keys.text, KeyPath::flat("text"));
  append_key_record(bytes, keys.is_stderr, KeyPath::flat("stderr"));
  std::uint64_t sequence = kFirstSequence;
  for (const auto& line : lines) {
    const TailField fields[] = {{keys.text, ValueView(std::string_view(line.text))},
                                {keys.is_stderr, ValueView(line.from_stderr)}};
    append_row_record(bytes, sequence++, line.number, line.time_ns, fields, Stream::kConsole);
  }
  return bytes;
}

void write_segment(const fs::path& rank_file, std::string_view bytes) {
  for (unsigned index = kFirstSegment;; ++index) {
    const fs::path path = tail_segment_path(rank_file, index);
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.is_open() && errno == EEXIST) continue;
    const int error = file.is_open() ? write_all(file.get(), bytes) : errno;
    if (error != 0) throw_io("write", path, error);
    return;
  }
}

}  // namespace

void bury_console_lines(const fs::path& rank_file, int rank, std::string_view launch_token,
                        const std::vector<ConsoleLine>& lines) {
  const auto file = RankFile::open(rank_file);
  if (file.info().end_time_ns) return;
  write_segment(rank_file, encode(console_keys(file), rank, launch_token, lines));
}

}  // namespace ranklog::writer
