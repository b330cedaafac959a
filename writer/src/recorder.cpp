#include "recorder.hpp"

#include <algorithm>
#include <limits>

#include "ranklog/schema/time.hpp"

namespace ranklog::writer {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
// How long a full queue without any progress holds up a caller before rows are dropped instead.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

Recorder::Recorder(Limits limits, std::int64_t next_step, std::shared_ptr<TailSegment> first_segment)
    : limits_(limits), next_step_(next_step), segment_(std::move(first_segment)) {}

// ---- Callers ----

LogStatus Recorder::log(std::optional<std::int64_t> step, std::span<const Field> fields) noexcept {
  return log_row(step, fields.size(), [&](std::size_t i) {
    const auto key = intern_at(i, fields[i].key);
    if (key) add_field(*key, fields[i].value);
    return key.has_value();
  });
}

// Rows mostly have the keys of the row before, in the same places: then a comparison does for a look-up.
std::optional<KeyId> Recorder::intern_at(std::size_t position, std::string_view name) {
  if (position >= expected_keys_.size()) expected_keys_.resize(position + 1);
  ExpectedKey& expected = expected_keys_[position];
  if (expected.id && expected.name == name) return expected.id;
  const auto id = keys_.intern(name);
  if (!id) return std::nullopt;
  expected.id.reset();
  expected.name = name;
  expected.id = id;
  return id;
}

LogStatus Recorder::log(std::int64_t step, std::span<const PathField> fields) noexcept {
  return log_row(step, fields.size(), [&](std::size_t i) {
    const auto key = keys_.intern(fields[i].path);
    if (key) add_field(*key, fields[i].value);
    return key.has_value();
  });
}

template <class Resolve>
LogStatus Recorder::log_row(std::optional<std::int64_t> step, std::size_t count, Resolve resolve) noexcept {
  if (count == 0 || (step && *step < 0)) return LogStatus::kRejected;
  const std::int64_t time_ns = unix_time_ns();
  try {
    Lock lock(mutex_);
    const bool room = wait_for_room(lock);
    if (closed_) return LogStatus::kClosed;
    const auto accepted = accept_step(step);
    if (!accepted) return LogStatus::kRejected;
    begin_row();
    for (std::size_t i = 0; i < count; ++i) {
      if (!resolve(i)) return LogStatus::kRejected;
    }
    if (!room) return drop();
    const LogStatus status = append(
        [&](std::string& out, std::uint64_t sequence) { encode_row(out, sequence, *accepted, time_ns); });
    last_step_ = std::max(*accepted, last_step_.value_or(*accepted));
    return status;
  } catch (...) {
    const Lock lock(mutex_);
    return closed_ ? LogStatus::kClosed : drop();
  }
}

LogStatus Recorder::record(OperationBody body) noexcept {
  Operation operation;
  operation.time_ns = unix_time_ns();
  operation.body = std::move(body);
  try {
    Lock lock(mutex_);
    const bool room = wait_for_room(lock);
    if (closed_) return LogStatus::kClosed;
    if (!room) return drop();
    return append([&](std::string& out, std::uint64_t sequence) {
      operation.sequence = sequence;
      append_operation_record(out, operation);
    });
  } catch (...) {
    const Lock lock(mutex_);
    return closed_ ? LogStatus::kClosed : drop();
  }
}

void Recorder::close() noexcept {
  const Lock lock(mutex_);
  closed_ = true;
  room_.notify_all();
  wake_locked();
}

std::uint64_t Recorder::last_sequence() const noexcept {
  const Lock lock(mutex_);
  return sequence_;
}

bool Recorder::enough_to_seal() const noexcept {
  return live_records_ >= limits_.chunk_rows || live_bytes_ + taken_bytes_ >= limits_.queue_bytes / 2;
}

bool Recorder::has_room() const noexcept {
  return live_bytes_ + taken_bytes_ < limits_.queue_bytes;
}

bool Recorder::wait_for_room(Lock& lock) {
  if (has_room()) return true;
  wake_locked();
  if (!full_since_) full_since_ = std::chrono::steady_clock::now();
  const auto give_up = [&] { return closed_ || !seal_error_.empty(); };
  if (limits_.when_full == WhenFull::kBlock && !give_up()) {
    room_.wait_until(lock, *full_since_ + kPatience, [&] { return has_room() || give_up(); });
  }
  return has_room();
}

LogStatus Recorder::drop() noexcept {
  ++dropped_rows_;
  ++unreported_drops_;
  return LogStatus::kDropped;
}

// ---- Encoding ----

std::optional<std::int64_t> Recorder::accept_step(std::optional<std::int64_t> step) const noexcept {
  if (!step) {
    if (!last_step_) return next_step_;
    if (*last_step_ == std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    return *last_step_ + 1;
  }
  if (limits_.strict && last_step_ && *step < *last_step_) return std::nullopt;
  return step;
}

void Recorder::begin_row() noexcept {
  ++row_;
  fields_.clear();
}

// A key that stands twice in one call keeps its later value.
void Recorder::add_field(KeyId key, ValueView value) {
  if (key >= key_uses_.size()) key_uses_.resize(key + std::size_t{1});
  auto& use = key_uses_[key];
  if (use.row == row_) {
    fields_[use.position].value = value;
    return;
  }
  use.row = row_;
  use.position = fields_.size();
  fields_.push_back({key, value});
}

void Recorder::encode_row(std::string& out, std::uint64_t sequence, std::int64_t step, std::int64_t time_ns) {
  for (const auto& field : fields_) {
    if (key_uses_[field.key].defined_in == segment_number_) continue;
    append_key_record(out, field.key, keys_.paths()[field.key]);
  }
  append_row_record(out, sequence, step, time_ns, fields_);
  for (const auto& field : fields_) key_uses_[field.key].defined_in = segment_number_;
}

std::string& Recorder::block_with_room() {
  if (!blocks_.empty() && blocks_.back().size() < kBlockBytes) return blocks_.back();
  if (spare_blocks_.empty()) {
    blocks_.emplace_back();
    blocks_.back().reserve(kBlockBytes + kBlockBytes / 8);
  } else {
    blocks_.push_back(std::move(spare_blocks_.back()));
    spare_blocks_.pop_back();
  }
  return blocks_.back();
}

template <class Encoder>
LogStatus Recorder::append(Encoder encode) {
  std::string& block = block_with_room();
  const std::size_t start = block.size();
  try {
    encode(block, sequence_ + 1);
  } catch (...) {
    block.resize(start);
    throw;
  }
  ++sequence_;
  live_bytes_ += block.size() - start;
  if (live_records_++ == 0) oldest_ = std::chrono::steady_clock::now();
  if (seal_error_.empty() && enough_to_seal()) wake_locked();
  return write_tail(std::string_view(block).substr(start));
}

LogStatus Recorder::write_tail(std::string_view records) noexcept {
  if (tail_error_ == 0 && segment_) {
    const int error = segment_->append(records);
    if (error == 0) {
      tail_through_ = sequence_;
      return LogStatus::kOk;
    }
    break_tail(error);
  }
  return LogStatus::kInMemory;
}

void Recorder::break_tail(int error_number) noexcept {
  tail_error_ = error_number;
  wake_locked();
}

// ---- The background thread ----

void Recorder::wait_until(SteadyTime deadline) {
  Lock lock(mutex_);
  work_.wait_until(lock, deadline, [&] { return wake_; });
  wake_ = false;
}

void Recorder::wake() noexcept {
  const Lock lock(mutex_);
  wake_locked();
}

void Recorder::wake_locked() noexcept {
  if (wake_) return;
  wake_ = true;
  work_.notify_one();
}

Recorder::Load Recorder::load() const {
  const Lock lock(mutex_);
  return {live_records_ + (unreported_drops_ > 0 ? 1 : 0), enough_to_seal(), tail_error_ != 0, oldest_};
}

void Recorder::report_drops() {
  if (unreported_drops_ == 0) return;
  Operation operation;
  operation.time_ns = unix_time_ns();
  Event event;
  event.kind = "drop";
  event.json = "{\"rows\":" + std::to_string(unreported_drops_) + "}";
  operation.body = std::move(event);
  append([&](std::string& out, std::uint64_t sequence) {
    operation.sequence = sequence;
    append_operation_record(out, operation);
  });
  unreported_drops_ = 0;
}

Backlog Recorder::take(std::shared_ptr<TailSegment>& next, int next_error) {
  const Lock lock(mutex_);
  report_drops();
  Backlog backlog;
  const auto& paths = keys_.paths();
  backlog.new_keys.assign(paths.begin() + static_cast<std::ptrdiff_t>(keys_taken_), paths.end());
  keys_taken_ = paths.size();
  backlog.blocks = std::move(blocks_);
  blocks_.clear();
  backlog.watermark = sequence_;
  backlog.dropped_rows = dropped_rows_;
  backlog.segment = std::move(segment_);
  taken_segment_ = backlog.segment;
  taken_bytes_ = std::exchange(live_bytes_, 0);
  live_records_ = 0;
  ++segment_number_;
  if (tail_error_ == 0) {
    segment_ = std::move(next);
    tail_error_ = next_error;
  }
  return backlog;
}

void Recorder::recycle(std::vector<std::string> blocks) {
  constexpr std::size_t kMostSpare = 4;
  const Lock lock(mutex_);
  for (auto& block : blocks) {
    if (spare_blocks_.size() == kMostSpare || block.capacity() > 2 * kBlockBytes) continue;
    block.clear();
    spare_blocks_.push_back(std::move(block));
  }
}

void Recorder::committed(std::uint64_t watermark) {
  const Lock lock(mutex_);
  taken_bytes_ = 0;
  taken_segment_.reset();
  tail_through_ = std::max(tail_through_, watermark);
  durable_ = std::max(durable_, watermark);
  seal_error_.clear();
  full_since_.reset();
  room_.notify_all();
}

void Recorder::commit_failed(const char* reason) noexcept {
  const Lock lock(mutex_);
  try {
    seal_error_ = reason;
  } catch (...) {
    seal_error_ = "out of memory";  // short enough to need none
  }
  room_.notify_all();
}

int Recorder::resume_tail(std::shared_ptr<TailSegment>& segment) {
  const Lock lock(mutex_);
  for (const auto& block : blocks_) {
    if (const int error = segment->append(block); error != 0) {
      tail_error_ = error;
      return error;
    }
  }
  segment_.swap(segment);
  tail_error_ = 0;
  tail_through_ = sequence_;
  return 0;
}

void Recorder::tail_failed(int error_number) {
  const Lock lock(mutex_);
  tail_through_ = durable_;
  break_tail(error_number);
}

void Recorder::abandon() {
  const Lock lock(mutex_);
  dropped_rows_ += sequence_ - std::min(sequence_, tail_through_);
}

std::shared_ptr<TailSegment> Recorder::release_segment() {
  const Lock lock(mutex_);
  return std::move(segment_);
}

Recorder::SyncPoint Recorder::sync_point() const {
  const Lock lock(mutex_);
  SyncPoint point;
  point.through = tail_through_;
  for (const auto& segment : {taken_segment_, segment_}) {
    if (segment && segment->needs_sync()) point.segments.push_back(segment);
  }
  return point;
}

void Recorder::synced(std::uint64_t through) {
  const Lock lock(mutex_);
  durable_ = std::max(durable_, through);
}

// ---- What a person is told ----

std::string Recorder::trouble() const {
  if (!seal_error_.empty()) return seal_error_;
  if (tail_error_ != 0) return "cannot write the tail: " + errno_text(tail_error_);
  return "";
}

bool Recorder::in_trouble() const {
  const Lock lock(mutex_);
  return !trouble().empty();
}

bool Recorder::is_durable(std::uint64_t through) const noexcept {
  const Lock lock(mutex_);
  return durable_ >= through;
}

Outcome Recorder::outcome(std::uint64_t through) const {
  const Lock lock(mutex_);
  Outcome outcome;
  outcome.dropped_rows = dropped_rows_;
  outcome.durable = durable_ >= through && dropped_rows_ == 0;
  outcome.message = trouble();
  if (dropped_rows_ > 0) {
    outcome.message +=
        (outcome.message.empty() ? "" : "; ") + std::to_string(dropped_rows_) + " rows were dropped";
  }
  return outcome;
}

}  // namespace ranklog::writer
