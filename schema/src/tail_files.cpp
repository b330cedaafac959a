#include "tail_files.hpp"

#include <algorithm>
#include <charconv>
#include <new>
#include <system_error>
#include <unordered_set>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/naming.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;

// A writer's segments are far shorter; whatever else is there must not take all memory.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

std::string describe_place(const TailSegment& segment, std::size_t byte) {
  return "tail segment " + segment.path.filename().string() + " at byte " + std::to_string(byte);
}

// Collects the records of all segments.
class TailCollector {
 public:
  explicit TailCollector(std::uint64_t watermark) : watermark_(watermark) {}

  void add(TailKey key) { tail_.keys.push_back(std::move(key)); }
  void add(const TailRow& row) {
    if (!is_new(row.sequence)) return;
    builder_.add(row);
    note_time(row.time_ns);
    if (row.stream != Stream::kHistory) return;
    ++tail_.rows;
    tail_.last_step = std::max(tail_.last_step.value_or(row.step), row.step);
  }
  void add(Operation operation) {
    if (!is_new(operation.sequence)) return;
    note_time(operation.time_ns);
    const auto* event = std::get_if<Event>(&operation.body);
    if (event != nullptr && event->kind == kRewindEvent && event->step) {
      tail_.rewind_step = std::min(tail_.rewind_step.value_or(*event->step), *event->step);
    }
    tail_.operations.push_back(std::move(operation));
  }
  void add_damage(std::string place, std::string reason) {
    tail_.damage.push_back({std::move(place), std::move(reason)});
  }
  void add_bytes(std::size_t bytes) { tail_.bytes += bytes; }
  void add_passed_over(std::uint64_t records) { tail_.passed_over += records; }

  Tail take() {
    tail_.groups = builder_.take();
    std::ranges::sort(tail_.operations, {}, &Operation::sequence);
    return std::move(tail_);
  }

 private:
  // A writer whose append failed half-way may have written a record a second time.
  bool is_new(std::uint64_t sequence) { return sequence > watermark_ && seen_.insert(sequence).second; }
  void note_time(std::int64_t time_ns) {
    tail_.last_time_ns = std::max(tail_.last_time_ns.value_or(time_ns), time_ns);
  }

  std::uint64_t watermark_;
  Tail tail_;
  RowGroupBuilder builder_;
  std::unordered_set<std::uint64_t> seen_;
};

// Null: no damage.
const char* reason_of(TailReader::Gap gap) {
  switch (gap) {
    case TailReader::Gap::kEnd:
    case TailReader::Gap::kUnfinished:
      return nullptr;
    case TailReader::Gap::kDamage:
      return "checksum mismatch; later records are read";
    case TailReader::Gap::kDamagedEnd:
      return "the last record is damaged or torn";
    case TailReader::Gap::kGivenUp:
      return "too much is damaged; what follows is left out";
  }
  return nullptr;
}

void read_records(const TailSegment& segment, std::string_view bytes, std::size_t header_bytes,
                  TailCollector& collector) {
  TailReader reader(bytes.substr(header_bytes));
  for (;;) {
    while (std::optional<TailRecord> record = reader.next()) {
      std::visit([&](auto& body) { collector.add(std::move(body)); }, *record);
    }
    const std::size_t damaged_at = header_bytes + reader.position();
    const auto gap = reader.at_end() ? TailReader::Gap::kEnd : reader.skip();
    if (const char* reason = reason_of(gap)) {
      collector.add_damage(describe_place(segment, damaged_at), reason);
    }
    if (gap != TailReader::Gap::kUnfinished && gap != TailReader::Gap::kDamage) {
      collector.add_bytes(damaged_at);  // what is reserved behind the last record holds nothing
      collector.add_passed_over(reader.passed_over());
      return;
    }
  }
}

void read_segment(const TailSegment& segment, const Identity& identity, TailCollector& collector) {
  if (!segment.file.is_open()) {
    collector.add_damage(describe_place(segment, 0), "it is not a regular file");
    return;
  }
  try {
    const std::string bytes = read_up_to(segment.file, kMostBytes, segment.path);
    if (bytes.size() == kMostBytes) {
      collector.add_damage(describe_place(segment, kMostBytes), "it is too long; what follows is left out");
    }
    const TailStart start = find_tail_start(bytes, identity.launch_token, identity.rank);
    if (start.kind == TailStart::Kind::kUnfinished) return;
    if (start.kind == TailStart::Kind::kOther) {
      collector.add_damage(describe_place(segment, 0), "it belongs to another launch and is left out");
      return;
    }
    if (start.kind == TailStart::Kind::kDamaged) {
      collector.add_damage(describe_place(segment, 0), "its header is damaged; its records are read");
    }
    read_records(segment, bytes, start.bytes, collector);
  } catch (const Error& error) {
    collector.add_damage(describe_place(segment, 0), error.what());
  } catch (const std::bad_alloc&) {
    collector.add_damage(describe_place(segment, 0), "it is too long for this machine's memory");
  }
}

std::optional<TailSegment> open_segment(const fs::path& rank_file, unsigned index) {
  fs::path path = tail_segment_path(rank_file, index);
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  const bool is_other = fs::exists(fs::file_status(type)) && type != fs::file_type::regular;
  FileDescriptor file = is_other ? FileDescriptor() : open_if_exists(path);
  if (!file.is_open() && !is_other) return std::nullopt;
  return TailSegment{std::move(path), index, std::move(file)};
}

// A listing may miss a name that was added while it went on, and yet have one that was added later. A writer
// numbers its segments one after the other, so each is asked for the one before it.
void add_missed(std::vector<TailSegment>& segments, const fs::path& rank_file) {
  for (std::size_t i = segments.size(); i-- > 0;) {
    while (segments[i].index > 0 && (i == 0 || segments[i - 1].index != segments[i].index - 1)) {
      auto missed = open_segment(rank_file, segments[i].index - 1);
      if (!missed) break;
      segments.insert(segments.begin() + static_cast<std::ptrdiff_t>(i), std::move(*missed));
    }
  }
}

}  // namespace

std::optional<unsigned> parse_tail_segment_name(std::string_view name, const fs::path& rank_file) {
  const std::string prefix = rank_file.stem().string() + ".tail.";
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  unsigned index = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size()) return std::nullopt;
  if (tail_segment_path(rank_file, index).filename() != name) return std::nullopt;
  return index;
}

std::vector<std::string> list_folder(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path where = folder.empty() ? fs::path(".") : folder;
  for (fs::directory_iterator it(where, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) throw Error(ErrorCode::kIo, "cannot list '" + where.string() + "': " + error.message());
  return names;
}

std::vector<TailSegment> open_tail_segments(const fs::path& rank_file,
                                            const std::vector<std::string>& names) {
  std::vector<TailSegment> segments;
  for (const std::string& name : names) {
    const auto index = parse_tail_segment_name(name, rank_file);
    if (!index) continue;
    if (auto segment = open_segment(rank_file, *index)) segments.push_back(std::move(*segment));
  }
  std::ranges::sort(segments, {}, &TailSegment::index);
  add_missed(segments, rank_file);
  return segments;
}

Tail read_tail(const std::vector<TailSegment>& segments, const Identity& identity, std::uint64_t watermark) {
  TailCollector collector(watermark);
  for (const TailSegment& segment : segments) read_segment(segment, identity, collector);
  return collector.take();
}

}  // namespace ranklog
