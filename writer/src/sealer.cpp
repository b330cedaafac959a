#include "sealer.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <stdexcept>
#include <thread>

#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/time.hpp"
#include "standard_output.hpp"

namespace ranklog::writer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstBackoff{100};
constexpr milliseconds kLongestBackoff{5000};
// A row that has its place is there in microseconds, unless its thread is stopped.
constexpr milliseconds kFirstPause{1};
constexpr milliseconds kLongestPause{100};
// How long the end of a file is tried again while the disk refuses.
constexpr milliseconds kEndPatience{3000};
// Merging is a nicety: a process that wants to end is not held up by it for longer.
constexpr milliseconds kMergePatience{2000};
constexpr std::chrono::seconds kReportInterval{60};
// In one transaction at most.
constexpr std::uint64_t kMostChunks = 64;
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Sealer::Sealer(Settings settings, RankDatabase database, Recorder& recorder)
    : settings_(std::move(settings)),
      start_(steady_clock::now()),
      recorder_(recorder),
      database_(std::move(database)),
      rows_([this](const RowGroup& group) { chunks_.push_back(database_->encode(group)); }),
      last_sync_(steady_clock::now()),
      last_commit_(last_sync_),
      retry_at_(last_sync_),
      last_report_(last_sync_),
      look_again_at_(last_sync_) {}

// ---- Any thread ----

bool Sealer::flush(std::uint64_t through, SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = ++flush_requested_;
  flush_through_ = std::max(flush_through_, through);
  flush_deadline_ = std::max(flush_deadline_, deadline);
  lock.unlock();
  recorder_.wake();
  lock.lock();
  return changed_.wait_until(
      lock, deadline, [&] { return flush_done_ >= ticket || recorder_.is_durable(through) || stopped_; });
}

void Sealer::request_stop(const std::optional<EndRecord>& end, SteadyTime deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    stop_ = true;
    end_ = end;
    stop_deadline_ = deadline;
  }
  recorder_.wake();
}

bool Sealer::wait_stopped(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] { return stopped_; });
}

std::string Sealer::end_trouble() const {
  const std::lock_guard lock(mutex_);
  return end_trouble_;
}

// ---- The thread ----

void Sealer::run() noexcept {
  const auto stopping = [&] {
    const std::lock_guard lock(mutex_);
    return stop_;
  };
  while (!stopping()) {
    try {
      const SteadyTime wake_at = next_wake();
      const bool in_vain = steady_clock::now() < std::max(retry_at_, look_again_at_);
      recorder_.wait_until(wake_at, in_vain ? kNever : watermark_ + settings_.chunk_rows);
      step();
    } catch (const std::exception& error) {
      recorder_.commit_failed(error.what());
      back_off();
    }
  }
  try {
    end();
  } catch (const std::exception& error) {
    recorder_.commit_failed(error.what());
  }
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

std::uint64_t Sealer::pending() const {
  return recorder_.last_sequence() - std::min(recorder_.last_sequence(), watermark_);
}

bool Sealer::enough_pending() const {
  return pending() >= settings_.chunk_rows || recorder_.queue().is_half_full();
}

void Sealer::note_time(SteadyTime now) {
  if (pending() == 0 && !recorder_.has_unreported_drops()) {
    oldest_.reset();
  } else if (!oldest_) {
    oldest_ = now;
  }
}

SteadyTime Sealer::next_wake() {
  const auto now = steady_clock::now();
  note_time(now);
  const auto seal_at = std::max(retry_at_, look_again_at_);
  auto wake_at = last_sync_ + settings_.sync_interval;
  if (flush_waits_) wake_at = std::min(wake_at, now + kFirstPause);
  if (batch_ || pause_.count() > 0 || recorder_.queue().is_broken()) return std::min(wake_at, seal_at);
  if (!oldest_) return wake_at;
  return std::min(wake_at, std::max(*oldest_ + settings_.seal_interval, seal_at));
}

bool Sealer::seal_due(SteadyTime now) {
  note_time(now);
  if (now < std::max(retry_at_, look_again_at_)) return false;
  return batch_ || enough_pending() || recorder_.queue().is_broken() ||
         (oldest_ && now >= *oldest_ + settings_.seal_interval);
}

void Sealer::step() {
  const auto now = steady_clock::now();
  const bool refused = now >= retry_at_ && !recorder_.queue().prepare();
  if (now >= last_sync_ + settings_.sync_interval) sync_tail();
  if (seal_due(now)) {
    seal_what_is_due();
  } else if (now >= look_again_at_) {
    pause_ = milliseconds{0};
  }
  if (refused && steady_clock::now() >= retry_at_) back_off();
  beat(now);
  serve_flush();
  report();
}

void Sealer::seal_what_is_due() {
  // Whole chunks as long as there are enough rows for them.
  const std::uint64_t chunks = pending() / settings_.chunk_rows;
  const bool sealed = seal(std::clamp<std::uint64_t>(chunks, 1, kMostChunks) * settings_.chunk_rows);
  const bool in_vain = !sealed && !batch_ && retry_at_ <= steady_clock::now();
  pause_ = in_vain ? std::clamp(2 * pause_, kFirstPause, kLongestPause) : milliseconds{0};
  look_again_at_ = steady_clock::now() + pause_;
}

// Tells readers on other nodes that this process lives, though it has nothing to say.
void Sealer::beat(SteadyTime now) {
  if (batch_ || now < last_commit_ + settings_.heartbeat) return;
  SealBatch nothing;
  nothing.watermark = watermark_;
  nothing.dropped_rows = recorder_.dropped_rows();
  nothing.now_ns = unix_time_ns();
  nothing.active_ns = active_ns();
  last_commit_ = now;
  database_->commit(nothing);
  recorder_.committed(watermark_);
}

void Sealer::serve_flush() {
  std::uint64_t requested = 0, through = 0;
  SteadyTime deadline;
  {
    const std::lock_guard lock(mutex_);
    requested = flush_requested_;
    through = flush_through_;
    deadline = flush_deadline_;
  }
  if (requested == flush_served_) return;
  flush_waits_ = !make_durable(through) && steady_clock::now() < deadline;
  const std::lock_guard lock(mutex_);
  if (!flush_waits_) flush_served_ = flush_done_ = requested;
  changed_.notify_all();
}

// False if a caller is still writing one of these records; true if it is done, or the disk refuses.
bool Sealer::make_durable(std::uint64_t through) {
  sync_tail();
  // What the tail could not take is made durable by the database, if anything can do it.
  while (!recorder_.is_durable(through) && recorder_.queue().is_broken()) {
    const auto retry_at = retry_at_;
    if (seal(pending())) continue;
    if (retry_at_ != retry_at) return true;
    break;
  }
  return recorder_.is_durable(through);
}

void Sealer::sync_tail() {
  last_sync_ = steady_clock::now();
  recorder_.synced(recorder_.queue().sync());
}

// ---- Sealing ----

// What is pending, `most` records of it, in one transaction; or the batch that failed before. False if there
// was nothing, or if that failed.
bool Sealer::seal(std::uint64_t most) {
  try {
    return (batch_ || collect(most)) && commit();
  } catch (const std::exception& error) {
    recorder_.commit_failed(error.what());
    back_off();
    return false;
  }
}

// Rows are encoded while they are read, group by group, in memory that the processor still has at hand.
bool Sealer::collect(std::uint64_t most) {
  recorder_.report_drops();
  SealBatch batch;
  chunks_.clear();
  try {
    batch.watermark = recorder_.queue().drain(most, [&](std::string_view payload) {
      if (const auto row = NumberRow::find(payload)) return rows_.add(*row);
      auto record = decode_tail_record(payload);
      if (!record) throw std::logic_error("a record in memory does not decode");
      if (const auto* row = std::get_if<TailRow>(&*record)) rows_.add(*row);
      if (auto* operation = std::get_if<Operation>(&*record))
        batch.operations.push_back(std::move(*operation));
    });
    rows_.flush();
  } catch (...) {
    (void)rows_.take();  // they are read once more
    throw;
  }
  if (chunks_.empty() && batch.operations.empty()) return false;
  batch.chunks = std::move(chunks_);
  // All keys that these rows use were known before they were logged.
  batch.new_keys = recorder_.keys().paths_from(keys_);
  batch.dropped_rows = recorder_.dropped_rows();
  batch_keys_ = keys_ + batch.new_keys.size();
  batch_ = std::move(batch);
  return true;
}

bool Sealer::commit() {
  batch_->now_ns = unix_time_ns();
  batch_->active_ns = active_ns();
  database_->commit(*batch_);
  last_commit_ = steady_clock::now();
  watermark_ = batch_->watermark;
  keys_ = batch_keys_;
  batch_.reset();
  oldest_.reset();
  backoff_ = milliseconds{0};
  // Only now: until COMMIT has returned, the tail is what survives.
  recorder_.queue().release(watermark_, keys_);
  recorder_.committed(watermark_);
  return true;
}

std::int64_t Sealer::active_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now() - start_).count();
}

void Sealer::back_off() {
  backoff_ = std::clamp(2 * backoff_, kFirstBackoff, kLongestBackoff);
  retry_at_ = steady_clock::now() + backoff_;
}

// ---- The end ----

void Sealer::end() {
  std::optional<EndRecord> record;
  SteadyTime deadline;
  {
    const std::lock_guard lock(mutex_);
    record = end_;
    deadline = stop_deadline_;
  }
  recorder_.close();
  std::string trouble;
  const bool sealed = seal_rest(deadline);
  if (!sealed) {
    sync_tail();
    recorder_.abandon();
  }
  recorder_.queue().remove_files(sealed);
  if (sealed && record) {
    try {
      merge_if_possible(deadline);
      database_->finish(record->state, record->exit_code, unix_time_ns(), active_ns());
    } catch (const std::exception& error) {
      trouble = error.what();
    }
  }
  database_.reset();
  const std::lock_guard lock(mutex_);
  end_trouble_ = std::move(trouble);
}

// The end record does not depend on it.
void Sealer::merge_if_possible(SteadyTime deadline) {
  try {
    database_->merge_small_chunks(std::min(deadline, steady_clock::now() + kMergePatience));
  } catch (const std::exception&) {
    // Chunks that are not merged are as good, and `ranklog compact` merges them later.
  }
}

bool Sealer::seal_rest(SteadyTime deadline) {
  const auto give_up = std::min(deadline, steady_clock::now() + kEndPatience);
  while (batch_ || !recorder_.queue().is_drained()) {
    if (seal(kMostChunks * settings_.chunk_rows)) continue;
    // The disk refuses, or a caller is still writing its last row.
    const auto next = std::max(retry_at_, steady_clock::now() + milliseconds{1});
    if (next >= give_up) return false;
    std::this_thread::sleep_until(next);
  }
  return true;
}

// ---- What a person is told ----

void Sealer::report() {
  const auto now = steady_clock::now();
  if (settings_.silent || (reported_ && now < last_report_ + kReportInterval)) return;
  const auto outcome = recorder_.outcome(0);
  if (outcome.dropped_rows == reported_drops_ && !recorder_.in_trouble()) return;
  print_line(settings_.rank_file.filename().string() + ": " + outcome.message + "; training goes on");
  reported_ = true;
  last_report_ = now;
  reported_drops_ = outcome.dropped_rows;
}

}  // namespace ranklog::writer
