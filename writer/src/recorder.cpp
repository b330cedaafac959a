#include "recorder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "ranklog/schema/time.hpp"

namespace ranklog::writer {
namespace {

// The keys of this thread's last row, by the place in the call: rows mostly have the keys of the row before,
// so that a comparison does for a look-up.
constexpr std::size_t kExpectedKeys = 64;
struct ExpectedKeys {
  std::uint64_t recorder = 0;
  std::array<const KnownKey*, kExpectedKeys> keys{};
};
constinit thread_local ExpectedKeys expected_keys;

std::uint64_t next_recorder_id() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  return ++last;
}

constexpr KeyId kNoKey = std::numeric_limits<KeyId>::max();  // as an invalid Key has it

std::uint64_t load_word(const char* bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Ten of these stand in the way of each row, and a call of memcmp costs more than the comparison.
bool same_name(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (a.size() < kWord) return a == b;
  for (std::size_t i = 0; i + kWord < a.size(); i += kWord) {
    if (load_word(a.data() + i) != load_word(b.data() + i)) return false;
  }
  return load_word(a.data() + a.size() - kWord) == load_word(b.data() + b.size() - kWord);
}

}  // namespace

Recorder::Recorder(Limits limits, std::int64_t next_step, TailQueue::Files files)
    : limits_(limits),
      id_(next_recorder_id()),
      queue_(std::move(files), {limits.queue_bytes, limits.when_full == WhenFull::kBlock},
             [this] { wake(); }),
      keys_([this](KeyId id, const KeyPath& path) { queue_.define_key(id, path); }),
      last_step_(next_step - 1) {}

// ---- Callers ----

LogStatus Recorder::log(std::optional<std::int64_t> step, std::span<const Field> fields) noexcept {
  if (expected_keys.recorder != id_) expected_keys = {id_, {}};
  return log_row(step, fields, [&](std::size_t i) {
    const KnownKey* key = expect(i, fields[i].key);
    return key != nullptr ? key->id : kNoKey;
  });
}

const KnownKey* Recorder::expect(std::size_t position, std::string_view name) {
  if (position >= kExpectedKeys) return keys_.intern(name);
  const KnownKey*& expected = expected_keys.keys[position];
  if (expected == nullptr || !same_name(expected->name, name)) expected = keys_.intern(name);
  return expected;
}

LogStatus Recorder::log(std::optional<std::int64_t> step, std::span<const KeyedField> fields) noexcept {
  const std::size_t keys = keys_.size();
  return log_row(step, fields, [&](std::size_t i) {
    const KeyId key = fields[i].key.id;
    return key < keys ? key : kNoKey;
  });
}

LogStatus Recorder::log(std::int64_t step, std::span<const PathField> fields) noexcept {
  return log_row(step, fields, [&](std::size_t i) { return keys_.intern(fields[i].path).value_or(kNoKey); });
}

LogStatus Recorder::log(Stream stream, std::int64_t step, std::int64_t time_ns,
                        std::span<const Field> fields) noexcept {
  if (closed_.load(std::memory_order_relaxed)) return LogStatus::kClosed;
  try {
    std::vector<TailField> resolved;
    resolved.reserve(fields.size());
    for (const Field& field : fields) {
      const KnownKey* key = keys_.intern(field.key);
      if (key == nullptr) return LogStatus::kRejected;
      resolved.push_back({key->id, field.value});
    }
    return put_row(stream, step, time_ns, resolved);
  } catch (...) {
    return count_drop(LogStatus::kDropped);
  }
}

LogStatus Recorder::rewind(std::int64_t step) noexcept {
  if (step < 0) return LogStatus::kRejected;
  Event event;
  event.kind = kRewindEvent;
  event.json = "{}";
  event.step = step;
  const LogStatus status = record(std::move(event));
  if (status == LogStatus::kOk || status == LogStatus::kInMemory) last_step_.store(step - 1);
  return status;
}

LogStatus Recorder::put_row(Stream stream, std::int64_t step, std::int64_t time_ns,
                            std::span<const TailField> fields) noexcept {
  const std::size_t bytes = row_payload_bytes(fields);
  if (bytes > kMaxRecordBytes) return count_drop(LogStatus::kDropped);
  const TailQueue::Reservation reservation = queue_.reserve(bytes);
  return count_drop(put(reservation, bytes, [&](const TailBuffer::Place& place) {
    write_row_payload(place.payload(), place.sequence, step, time_ns, fields, stream);
    return reservation.buffer->publish(place, bytes);
  }));
}

LogStatus Recorder::put_row(std::int64_t step, std::int64_t time_ns, ShortRow& row) noexcept {
  const TailQueue::Reservation reservation = queue_.reserve(row.size());
  return count_drop(put(reservation, row.size(), [&](const TailBuffer::Place& place) {
    row.finish(Stream::kHistory, place.sequence, step, time_ns);
    const std::uint32_t checksum = frame_checksum(row.payload());
    std::memcpy(place.payload(), row.payload().data(), row.size());
    return reservation.buffer->publish(place, row.payload(), checksum);
  }));
}

Key Recorder::key(std::string_view name) {
  const KnownKey* known = keys_.intern(name);
  return known != nullptr ? Key{known->id} : Key{};
}

template <class Fields, class KeyOf>
LogStatus Recorder::log_row(std::optional<std::int64_t> step, Fields fields, KeyOf key_of) noexcept {
  if (closed_.load(std::memory_order_relaxed)) return LogStatus::kClosed;
  if (fields.empty() || (step && *step < 0)) return LogStatus::kRejected;
  const std::int64_t time_ns = unix_time_ns();
  try {
    ShortRow row;
    bool is_short = true;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const KeyId key = key_of(i);
      if (key == kNoKey) return LogStatus::kRejected;
      is_short = is_short && row.add(key, fields[i].value);
    }
    std::vector<TailField> long_row;
    if (!is_short) {
      long_row.reserve(fields.size());
      for (std::size_t i = 0; i < fields.size(); ++i) long_row.push_back({key_of(i), fields[i].value});
    }
    const auto accepted = accept_step(step);
    if (!accepted) return LogStatus::kRejected;
    if (is_short) return put_row(*accepted, time_ns, row);
    return put_row(Stream::kHistory, *accepted, time_ns, long_row);
  } catch (...) {
    return count_drop(LogStatus::kDropped);
  }
}

LogStatus Recorder::record(OperationBody body) noexcept {
  if (closed_.load(std::memory_order_relaxed)) return LogStatus::kClosed;
  try {
    std::string payload = operation_payload(unix_time_ns(), body);
    if (payload.size() > kMaxRecordBytes) return count_drop(LogStatus::kDropped);
    return count_drop(put_operation(queue_.reserve(payload.size()), payload));
  } catch (...) {
    return count_drop(LogStatus::kDropped);
  }
}

template <class Publish>
LogStatus Recorder::put(const TailQueue::Reservation& reservation, std::size_t payload_bytes,
                        Publish publish) noexcept {
  if (reservation.refusal != TailQueue::Refusal::kNone) [[unlikely]] {
    return reservation.refusal == TailQueue::Refusal::kClosed ? LogStatus::kClosed : LogStatus::kDropped;
  }
  const TailBuffer::Place& place = reservation.place;
  TailBuffer::announce(place, payload_bytes);
  const int error = publish(place);
  if (place.sequence == wake_at_.load(std::memory_order_seq_cst)) [[unlikely]]
    wake();
  return error == 0 ? LogStatus::kOk : LogStatus::kInMemory;
}

LogStatus Recorder::put_operation(const TailQueue::Reservation& reservation, std::string& payload) noexcept {
  return put(reservation, payload.size(), [&](const TailBuffer::Place& place) {
    set_operation_sequence(payload.data(), place.sequence);
    std::ranges::copy(payload, place.payload());
    return reservation.buffer->publish(place, payload.size());
  });
}

std::optional<std::int64_t> Recorder::accept_step(std::optional<std::int64_t> step) noexcept {
  std::int64_t last = last_step_.load(std::memory_order_relaxed);
  if (step) {
    if (limits_.strict && *step < last) return std::nullopt;
    while (*step > last && !last_step_.compare_exchange_weak(last, *step)) continue;
    return step;
  }
  do {
    if (last == std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  } while (!last_step_.compare_exchange_weak(last, last + 1));
  return last + 1;
}

LogStatus Recorder::count_drop(LogStatus status) noexcept {
  if (status == LogStatus::kDropped) [[unlikely]] {
    dropped_rows_.fetch_add(1);
    unreported_drops_.fetch_add(1);
  }
  return status;
}

void Recorder::close() noexcept {
  closed_.store(true);
  try {
    report_drops();
  } catch (...) {
    // Without memory for the event: the count is in the file all the same.
  }
  queue_.close();
  wake();
}

// ---- The background thread ----

void Recorder::wait_until(SteadyTime deadline, std::uint64_t sequence) {
  wake_at_.store(sequence, std::memory_order_seq_cst);
  if (queue_.last_sequence() >= sequence) return;  // it came before it was asked for
  std::unique_lock lock(mutex_);
  work_.wait_until(lock, deadline, [&] { return wake_; });
  wake_ = false;
}

void Recorder::wake() noexcept {
  const std::lock_guard lock(mutex_);
  if (wake_) return;
  wake_ = true;
  work_.notify_one();
}

void Recorder::report_drops() {
  if (unreported_drops_.load() == 0) return;
  const std::uint64_t rows = unreported_drops_.exchange(0);
  Event event;
  event.kind = "drop";
  event.json = "{\"rows\":" + std::to_string(rows) + "}";
  std::string payload = operation_payload(unix_time_ns(), std::move(event));
  (void)put_operation(queue_.reserve_now(payload.size()), payload);
}

void Recorder::committed(std::uint64_t watermark) {
  synced(watermark);
  queue_.set_hopeless(false);
  const std::lock_guard lock(mutex_);
  seal_error_.clear();
}

void Recorder::commit_failed(const char* reason) noexcept {
  queue_.set_hopeless(true);
  const std::lock_guard lock(mutex_);
  try {
    seal_error_ = reason;
  } catch (...) {
    seal_error_ = "out of memory";  // short enough to need none
  }
}

void Recorder::synced(std::uint64_t through) {
  durable_.store(std::max(durable_.load(), through));  // by this thread alone
}

void Recorder::abandon() {
  dropped_rows_.fetch_add(queue_.in_memory_alone());
}

// ---- What a person is told ----

std::string Recorder::trouble() const {
  {
    const std::lock_guard lock(mutex_);
    if (!seal_error_.empty()) return seal_error_;
  }
  const int error = queue_.error();
  return error == 0 ? "" : "cannot write the tail: " + errno_text(error);
}

bool Recorder::in_trouble() const {
  return !trouble().empty();
}

Outcome Recorder::outcome(std::uint64_t through) const {
  Outcome outcome;
  outcome.dropped_rows = dropped_rows();
  outcome.durable = is_durable(through) && outcome.dropped_rows == 0;
  outcome.message = trouble();
  if (outcome.dropped_rows > 0) {
    outcome.message +=
        (outcome.message.empty() ? "" : "; ") + std::to_string(outcome.dropped_rows) + " rows were dropped";
  }
  return outcome;
}

}  // namespace ranklog::writer
