#include "ranklog/schema/tail.hpp"

#include <algorithm>
#include <cstring>

#include "bytes.hpp"
#include "crc32c.hpp"
#include "operation_json.hpp"

namespace ranklog {
namespace {

// On disk, frozen (FORMAT.md, "Tail").
constexpr std::string_view kMagic = "RKLGTAIL";
constexpr std::uint32_t kTailVersion = 1;
constexpr std::uint8_t kKeyRecord = 1;
constexpr std::uint8_t kFirstRow = 2;  // then in the order of the streams
constexpr std::uint8_t kLastRow = kFirstRow + kStreams.size() - 1;
constexpr std::uint8_t kFirstOperation = 16;  // then in the order of OperationBody's alternatives
constexpr std::uint8_t kLastOperation = kFirstOperation + std::variant_size_v<OperationBody> - 1;

// Reserves the frame of a record and fills it in at the end.
class Frame {
 public:
  explicit Frame(std::string& out) : out_(out), start_(out.size()) { out_.append(kFrameHeadBytes, '\0'); }
  void close() {
    const std::string_view payload = std::string_view(out_).substr(start_ + kFrameHeadBytes);
    if (payload.size() > kMaxRecordBytes) {
      out_.resize(start_);
      throw Error(ErrorCode::kUsage, "a record of more than 256 MiB cannot be logged",
                  "log the data as a file of an artifact");
    }
    const auto length = static_cast<std::uint32_t>(payload.size());
    const std::uint32_t checksum = frame_checksum(payload);
    out_.resize(start_ + frame_bytes(length));
    std::memcpy(out_.data() + start_, &length, sizeof(length));
    std::memcpy(out_.data() + start_ + sizeof(length), &checksum, sizeof(checksum));
  }

 private:
  std::string& out_;
  std::size_t start_;
};

// The payload of the record that starts at `position`; empty if it is cut off or damaged. No payload is
// empty, so that a run of zero bytes, as a power loss leaves it, is not a record.
std::string_view payload_at(std::string_view bytes, std::size_t position) {
  ByteReader in(bytes.substr(position));
  if (in.remaining() < kFrameHeadBytes) return {};
  const auto length = in.fixed<std::uint32_t>();
  const auto checksum = in.fixed<std::uint32_t>();
  if (length == 0 || length > kMaxRecordBytes || length > in.remaining()) return {};
  const std::string_view payload = in.take(length);
  return frame_checksum(payload) == checksum ? payload : std::string_view();
}

template <class Integer>
char* put(char* out, Integer value) noexcept {
  std::memcpy(out, &value, sizeof(value));
  return out + sizeof(value);
}

// A number first: most fields are one, and they are what log() waits for.
char* put_field(char* out, const TailField& field) noexcept {
  const ValueKind kind = field.value.kind();
  out = put(out, field.key);
  out = put(out, static_cast<std::uint8_t>(kind));
  if (kind == ValueKind::kFloat64 || kind == ValueKind::kInt64) return put(out, field.value.bits());
  if (kind == ValueKind::kNull) return out;
  if (kind == ValueKind::kBool) return put(out, static_cast<std::uint8_t>(field.value.as_bool() ? 1 : 0));
  const std::string_view text = field.value.text();
  out = put(out, static_cast<std::uint32_t>(text.size()));
  return out + text.copy(out, text.size());
}

std::size_t field_bytes(const TailField& field) noexcept {
  constexpr std::size_t kHead = sizeof(KeyId) + 1;
  switch (field.value.kind()) {
    case ValueKind::kNull:
      return kHead;
    case ValueKind::kBool:
      return kHead + 1;
    case ValueKind::kFloat64:
    case ValueKind::kInt64:
      return kHead + sizeof(std::uint64_t);
    case ValueKind::kString:
    case ValueKind::kJson:
      return kHead + sizeof(std::uint32_t) + field.value.text().size();
  }
  return kHead;
}

ValueView read_value(ByteReader& in) {
  switch (static_cast<ValueKind>(in.fixed<std::uint8_t>())) {
    case ValueKind::kNull:
      return {};
    case ValueKind::kBool:
      return ValueView(in.fixed<std::uint8_t>() != 0);
    case ValueKind::kFloat64:
      return ValueView::scalar(ValueKind::kFloat64, in.fixed<std::uint64_t>());
    case ValueKind::kInt64:
      return ValueView::scalar(ValueKind::kInt64, in.fixed<std::uint64_t>());
    case ValueKind::kString:
      return ValueView(in.take(in.fixed<std::uint32_t>()));
    case ValueKind::kJson:
      return ValueView::json(in.take(in.fixed<std::uint32_t>()));
  }
  throw Error(ErrorCode::kDamaged, "unknown value kind");
}

TailKey read_key(ByteReader& in) {
  const auto key = in.fixed<KeyId>();
  return TailKey{key, KeyPath::parse(in.take(in.remaining()))};
}

TailRow read_row(std::uint8_t type, ByteReader& in) {
  TailRow row;
  row.stream = static_cast<Stream>(type - kFirstRow);
  row.sequence = in.fixed<std::uint64_t>();
  row.step = in.fixed<std::int64_t>();
  row.time_ns = in.fixed<std::int64_t>();
  const auto count = in.fixed<std::uint32_t>();
  constexpr std::size_t kLeastFieldBytes = sizeof(KeyId) + 1;
  if (count > in.remaining() / kLeastFieldBytes) throw Error(ErrorCode::kDamaged, "too many fields");
  row.fields.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto key = in.fixed<KeyId>();
    row.fields.push_back(TailField{key, read_value(in)});
  }
  in.expect_end();
  return row;
}

Operation read_operation(std::uint8_t type, ByteReader& in) {
  Operation operation;
  operation.sequence = in.fixed<std::uint64_t>();
  operation.time_ns = in.fixed<std::int64_t>();
  operation.body = operation_from_json(type - kFirstOperation, in.take(in.remaining()));
  return operation;
}

}  // namespace

std::uint32_t frame_checksum(std::string_view payload) noexcept {
  const std::uint32_t crc = crc32c_of(payload);
  return crc == 0 ? 1 : crc;
}

std::size_t row_payload_bytes(std::span<const TailField> fields) noexcept {
  constexpr std::size_t kHead = 1 + 3 * sizeof(std::uint64_t) + sizeof(std::uint32_t);
  std::size_t bytes = kHead;
  for (const TailField& field : fields) bytes += field_bytes(field);
  return bytes;
}

void write_row_payload(char* out, std::uint64_t sequence, std::int64_t step, std::int64_t time_ns,
                       std::span<const TailField> fields, Stream stream) noexcept {
  out = put(out, static_cast<std::uint8_t>(kFirstRow + index_of(stream)));
  out = put(out, sequence);
  out = put(out, step);
  out = put(out, time_ns);
  out = put(out, static_cast<std::uint32_t>(fields.size()));
  for (const TailField& field : fields) out = put_field(out, field);
}

void ShortRow::finish(Stream stream, std::uint64_t sequence, std::int64_t step,
                      std::int64_t time_ns) noexcept {
  char* out = ranklog::put(bytes_, static_cast<std::uint8_t>(kFirstRow + index_of(stream)));
  out = ranklog::put(out, sequence);
  out = ranklog::put(out, step);
  out = ranklog::put(out, time_ns);
  ranklog::put(out, fields_);
}

std::string operation_payload(std::int64_t time_ns, const OperationBody& body) {
  std::string out;
  append_fixed(out, static_cast<std::uint8_t>(kFirstOperation + body.index()));
  append_fixed(out, std::uint64_t{0});
  append_fixed(out, time_ns);
  out += operation_to_json(body);
  return out;
}

void set_operation_sequence(char* payload, std::uint64_t sequence) noexcept {
  put(payload + 1, sequence);
}

std::uint64_t sequence_of_record(std::string_view payload) noexcept {
  std::uint64_t sequence = 0;
  if (static_cast<std::uint8_t>(payload.front()) == kKeyRecord || payload.size() <= sizeof(sequence))
    return 0;
  std::memcpy(&sequence, payload.data() + 1, sizeof(sequence));
  return sequence;
}

std::optional<TailRecord> decode_tail_record(std::string_view payload) {
  try {
    ByteReader in(payload);
    const auto type = in.fixed<std::uint8_t>();
    if (type == kKeyRecord) return read_key(in);
    if (type >= kFirstRow && type <= kLastRow) return read_row(type, in);
    if (type >= kFirstOperation && type <= kLastOperation) return read_operation(type, in);
  } catch (const Error&) {
    // Right checksum, wrong content: as good as a wrong checksum to who reads it.
  }
  return std::nullopt;
}

std::optional<NumberRow> NumberRow::find(std::string_view payload) noexcept {
  if (payload.size() < kHeadBytes) return std::nullopt;
  const auto type = static_cast<std::uint8_t>(payload.front());
  if (type < kFirstRow || type > kLastRow) return std::nullopt;
  const NumberRow row(payload);
  const std::size_t count = row.at<std::uint32_t>(kHeadBytes - sizeof(std::uint32_t));
  if (payload.size() != kHeadBytes + count * kFieldBytes) return std::nullopt;
  for (std::size_t field = 0; field < count; ++field) {
    const ValueKind kind = row.kind(field);
    if (kind != ValueKind::kFloat64 && kind != ValueKind::kInt64) return std::nullopt;
  }
  return row;
}

Stream NumberRow::stream() const noexcept {
  return static_cast<Stream>(static_cast<std::uint8_t>(payload_.front()) - kFirstRow);
}

// A type that versions of ranklog after this one may write without breaking this one.
static bool is_of_later_version(std::string_view payload) {
  return static_cast<std::uint8_t>(payload.front()) > kLastOperation;
}

std::string encode_tail_header(std::string_view launch_token, int rank) {
  std::string out(kMagic);
  append_fixed(out, kTailVersion);
  append_fixed(out, std::uint32_t{0});
  Frame frame(out);
  append_fixed(out, static_cast<std::uint32_t>(rank));
  out += launch_token;
  frame.close();
  return out;
}

namespace {

constexpr std::size_t kFixedHeaderBytes = kMagic.size() + sizeof(kTailVersion) + sizeof(std::uint32_t);

// The beginning of a header and nothing behind it, as its writer leaves it that dies before it has written
// it.
bool is_unfinished(std::string_view segment, std::string_view own) {
  const auto differ = std::ranges::mismatch(segment, own);
  return std::all_of(differ.in1, segment.end(), [](char byte) { return byte == '\0'; });
}

// Tokens of two launches have less in common.
bool is_almost(std::string_view segment, std::string_view own) {
  constexpr int kMostDamagedBytes = 4;
  if (segment.size() < own.size()) return false;
  int damaged = 0;
  for (std::size_t i = 0; i < own.size(); ++i) damaged += segment[i] != own[i];
  return damaged <= kMostDamagedBytes;
}

void check_tail_version(std::string_view segment) {
  if (segment.size() < kFixedHeaderBytes) return;
  const auto version = ByteReader(segment.substr(kMagic.size())).fixed<std::uint32_t>();
  if (version == 0) {
    throw Error(ErrorCode::kVersion, "it was written by a provisional version of ranklog (tail version 0)");
  }
  if (version > kTailVersion) {
    throw Error(ErrorCode::kVersion, "tail version " + std::to_string(version) + " is newer than " +
                                         std::to_string(kTailVersion) + ", the newest this program reads");
  }
}

}  // namespace

TailStart find_tail_start(std::string_view segment, std::string_view launch_token, int rank) {
  const std::string own = encode_tail_header(launch_token, rank);
  if (segment.starts_with(own)) return {TailStart::Kind::kOwn, own.size()};
  if (is_unfinished(segment, own)) return {};
  const bool has_magic = segment.starts_with(kMagic);
  if (has_magic) check_tail_version(segment);
  const std::string_view payload =
      segment.size() > kFixedHeaderBytes ? payload_at(segment, kFixedHeaderBytes) : std::string_view();
  const bool is_own = payload == payload_at(own, kFixedHeaderBytes);  // whatever fills the gaps
  if (has_magic && is_own) return {TailStart::Kind::kOwn, own.size()};
  if (has_magic && !payload.empty()) return {TailStart::Kind::kOther, 0};
  if (is_almost(segment, own)) return {TailStart::Kind::kDamaged, own.size()};
  if (!has_magic) throw Error(ErrorCode::kNotOurs, "it does not begin like a tail segment");
  throw Error(ErrorCode::kDamaged, "its header is damaged");
}

void append_key_record(std::string& out, KeyId key, const KeyPath& path) {
  Frame frame(out);
  append_fixed(out, kKeyRecord);
  append_fixed(out, key);
  out += path.display();
  frame.close();
}

void append_row_record(std::string& out, std::uint64_t sequence, std::int64_t step, std::int64_t time_ns,
                       std::span<const TailField> fields, Stream stream) {
  Frame frame(out);
  const std::size_t start = out.size();
  out.resize(start + row_payload_bytes(fields));
  write_row_payload(out.data() + start, sequence, step, time_ns, fields, stream);
  frame.close();
}

void append_operation_record(std::string& out, const Operation& operation) {
  Frame frame(out);
  const std::size_t start = out.size();
  out += operation_payload(operation.time_ns, operation.body);
  set_operation_sequence(out.data() + start, operation.sequence);
  frame.close();
}

std::optional<TailRecord> TailReader::next() {
  for (;;) {
    const std::string_view payload = payload_at(bytes_, position_);
    if (payload.empty()) return std::nullopt;
    std::optional<TailRecord> record = decode_tail_record(payload);
    if (!record && !is_of_later_version(payload)) return std::nullopt;
    position_ = std::min(position_ + frame_bytes(payload.size()), bytes_.size());
    if (record) return record;
    ++passed_over_;
  }
}

bool TailReader::may_checksum(std::uint64_t bytes) {
  given_up_ = given_up_ || bytes > scan_budget_;
  if (!given_up_) scan_budget_ -= bytes;
  return !given_up_;
}

bool TailReader::stop_at(std::size_t position) {
  if (position + kFrameHeadBytes >= bytes_.size()) return false;
  std::uint32_t claimed = 0;
  std::memcpy(&claimed, bytes_.data() + position, sizeof(claimed));
  const auto type = static_cast<unsigned char>(bytes_[position + kFrameHeadBytes]);
  if (claimed == 0 || claimed > bytes_.size() - position - kFrameHeadBytes) return false;
  if (type < kKeyRecord || type > kLastOperation || !may_checksum(claimed)) return false;
  const std::string_view payload = payload_at(bytes_, position);
  if (payload.empty() || !decode_tail_record(payload)) return false;
  position_ = position;
  return true;
}

TailReader::Gap TailReader::skip() {
  ByteReader in(bytes_.substr(position_));
  if (in.remaining() < kFrameHeadBytes) return Gap::kEnd;
  const auto length = in.fixed<std::uint32_t>();
  // Who was writing this record died before its checksum: its log() never returned.
  const bool is_unfinished = in.fixed<std::uint32_t>() == 0;
  const bool has_its_length = length != 0 && length <= in.remaining();
  const Gap gap = is_unfinished ? Gap::kUnfinished : Gap::kDamage;
  if (has_its_length && !may_checksum(length)) return Gap::kGivenUp;  // next() did, in vain
  // Where the record says that it ends; else, its length being damaged or missing too, wherever one fits.
  if (stop_at(position_ + frame_bytes(length))) return gap;
  for (std::size_t next = position_ + kFrameAlignment; next + kFrameHeadBytes < bytes_.size() && !given_up_;
       next += kFrameAlignment) {
    if (stop_at(next)) return gap;
  }
  if (given_up_) return Gap::kGivenUp;
  return has_its_length && !is_unfinished ? Gap::kDamagedEnd : Gap::kEnd;
}

}  // namespace ranklog
