#include "sealer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/time.hpp"

namespace ranklog::writer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstBackoff{100};
constexpr milliseconds kLongestBackoff{5000};
// How long the end of a file is tried again while the disk refuses.
constexpr milliseconds kEndPatience{3000};
// Merging is a nicety: a process that wants to end is not held up by it for longer.
constexpr milliseconds kMergePatience{2000};
constexpr std::chrono::seconds kReportInterval{60};

}  // namespace

Sealer::Sealer(Settings settings, RankDatabase database, Recorder& recorder)
    : settings_(std::move(settings)),
      recorder_(recorder),
      database_(std::move(database)),
      next_segment_(settings_.next_segment),
      last_sync_(steady_clock::now()),
      last_commit_(last_sync_),
      retry_at_(last_sync_),
      last_report_(last_sync_) {}

// ---- Any thread ----

bool Sealer::flush(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = ++flush_requested_;
  lock.unlock();
  recorder_.wake();
  lock.lock();
  return changed_.wait_until(lock, deadline, [&] { return flush_done_ >= ticket || stopped_; });
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
    recorder_.wait_until(next_wake());
    try {
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

SteadyTime Sealer::next_wake() const {
  const auto now = steady_clock::now();
  const auto load = recorder_.load();
  SteadyTime seal_at = now + settings_.sync_interval;
  if (load.records > 0) seal_at = std::min(seal_at, load.oldest + settings_.seal_interval);
  if (backlog_ || load.tail_broken) seal_at = retry_at_;
  return std::min(last_sync_ + settings_.sync_interval, std::max(seal_at, retry_at_));
}

bool Sealer::seal_due(SteadyTime now) const {
  if (now < retry_at_) return false;
  const auto load = recorder_.load();
  return backlog_ || load.tail_broken || load.enough ||
         (load.records > 0 && now >= load.oldest + settings_.seal_interval);
}

void Sealer::step() {
  const auto now = steady_clock::now();
  if (now >= last_sync_ + settings_.sync_interval) sync_tail();
  if (seal_due(now)) seal();
  beat(now);
  serve_flush();
  report();
}

// Tells readers on other nodes that this process lives, though it has nothing to say.
void Sealer::beat(SteadyTime now) {
  if (backlog_ || now < last_commit_ + settings_.heartbeat) return;
  SealBatch nothing;
  nothing.watermark = watermark_;
  nothing.dropped_rows = recorder_.outcome(0).dropped_rows;
  nothing.now_ns = unix_time_ns();
  last_commit_ = now;
  database_->commit(nothing);
  recorder_.committed(watermark_);
}

void Sealer::serve_flush() {
  std::uint64_t requested = 0;
  {
    const std::lock_guard lock(mutex_);
    requested = flush_requested_;
  }
  if (requested == flush_served_) return;
  const std::uint64_t target = recorder_.last_sequence();
  sync_tail();
  // What the tail could not take is made durable by the database, if anything can do it.
  while (!recorder_.is_durable(target) && seal()) continue;
  flush_served_ = requested;
  const std::lock_guard lock(mutex_);
  flush_done_ = requested;
  changed_.notify_all();
}

void Sealer::sync_tail() {
  last_sync_ = steady_clock::now();
  const auto point = recorder_.sync_point();
  for (const auto& segment : point.segments) {
    if (const int error = segment->sync(); error != 0) {
      recorder_.tail_failed(error);
      return;
    }
  }
  recorder_.synced(point.through);
}

// ---- Sealing ----

// Everything that is live, in one transaction; or the backlog that failed before. False if that failed.
bool Sealer::seal() {
  if (!backlog_) begin_batch();
  if (!commit()) return false;
  if (recorder_.load().tail_broken && !last_round_) {
    resume_tail();
  } else {
    backoff_ = milliseconds{0};
  }
  return true;
}

void Sealer::begin_batch() {
  int error = 0;
  std::shared_ptr<TailSegment> next;
  if (!last_round_ && !recorder_.load().tail_broken) next = create_segment(error);
  backlog_ = recorder_.take(next, error);
  if (next) next->remove();  // the tail broke meanwhile
}

std::shared_ptr<TailSegment> Sealer::create_segment(int& error) {
  std::shared_ptr<TailSegment> segment;
  do {
    segment = TailSegment::create(tail_segment_path(settings_.rank_file, next_segment_++),
                                  settings_.tail_header, settings_.tail_mode, error);
  } while (error == EEXIST);
  return segment;
}

SealBatch Sealer::make_batch(const Backlog& backlog) {
  SealBatch batch;
  batch.new_keys = backlog.new_keys;
  batch.watermark = backlog.watermark;
  batch.dropped_rows = backlog.dropped_rows;
  RowGroupBuilder rows;
  for (const auto& block : backlog.blocks) {
    TailReader reader(block);
    while (const auto record = reader.next()) {
      if (const auto* row = std::get_if<TailRow>(&*record)) rows.add(*row);
      if (const auto* operation = std::get_if<Operation>(&*record)) batch.operations.push_back(*operation);
    }
    if (!reader.at_end()) throw std::logic_error("a record in memory does not decode");
  }
  batch.groups = rows.take();
  return batch;
}

bool Sealer::commit() {
  try {
    if (!batch_) {
      batch_ = make_batch(*backlog_);
      recorder_.recycle(std::move(backlog_->blocks));
      backlog_->blocks.clear();
    }
    batch_->now_ns = unix_time_ns();
    database_->commit(*batch_);
  } catch (const std::exception& error) {
    recorder_.commit_failed(error.what());
    back_off();
    return false;
  }
  last_commit_ = steady_clock::now();
  watermark_ = backlog_->watermark;
  recorder_.committed(watermark_);
  // Only now: until COMMIT has returned, the tail is what survives.
  if (backlog_->segment) backlog_->segment->remove();
  remove_broken_segments();
  backlog_.reset();
  batch_.reset();
  return true;
}

void Sealer::resume_tail() {
  int error = 0;
  broken_segments_.reserve(broken_segments_.size() + 1);
  auto segment = create_segment(error);
  if (segment && recorder_.resume_tail(segment) == 0) {
    if (segment) broken_segments_.push_back(std::move(segment));
    backoff_ = milliseconds{0};
    return;
  }
  if (segment) segment->remove();
  back_off();
}

// Their live records were copied to a segment that is not synced yet; the commit that follows holds them all.
void Sealer::remove_broken_segments() noexcept {
  for (const auto& segment : broken_segments_) segment->remove();
  broken_segments_.clear();
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
  last_round_ = true;
  std::string trouble;
  if (!seal_rest(deadline)) {
    sync_tail();
    recorder_.abandon();
  } else if (record) {
    try {
      database_->merge_small_chunks(std::min(deadline, steady_clock::now() + kMergePatience));
      database_->finish(record->state, record->exit_code, unix_time_ns());
    } catch (const std::exception& error) {
      trouble = error.what();
    }
  }
  database_.reset();
  const std::lock_guard lock(mutex_);
  end_trouble_ = std::move(trouble);
}

bool Sealer::seal_rest(SteadyTime deadline) {
  const auto give_up = std::min(deadline, steady_clock::now() + kEndPatience);
  for (;;) {
    try {
      const bool pending = backlog_ || recorder_.load().records > 0;
      if (!pending) break;
      if (!seal() && steady_clock::now() + backoff_ >= give_up) return false;
    } catch (const std::exception& error) {
      recorder_.commit_failed(error.what());
      return false;
    }
    if (backoff_.count() > 0) std::this_thread::sleep_until(std::min(retry_at_, give_up));
  }
  if (const auto segment = recorder_.release_segment()) segment->remove();
  remove_broken_segments();
  return true;
}

// ---- What a person is told ----

void Sealer::report() {
  const auto now = steady_clock::now();
  if (settings_.silent || (reported_ && now < last_report_ + kReportInterval)) return;
  const auto outcome = recorder_.outcome(0);
  if (outcome.dropped_rows == reported_drops_ && !recorder_.in_trouble()) return;
  std::fprintf(stderr, "ranklog: %s: %s; training goes on\n", settings_.rank_file.filename().c_str(),
               outcome.message.c_str());
  reported_ = true;
  last_report_ = now;
  reported_drops_ = outcome.dropped_rows;
}

}  // namespace ranklog::writer
