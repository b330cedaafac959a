#include "tail_queue.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "disk.hpp"
#include "ranklog/schema/naming.hpp"

namespace ranklog::writer {
namespace {

using std::chrono::steady_clock;

// Enough for a chunk's rows of ten scalars; a process that logs little keeps two of these.
constexpr std::size_t kUsualCapacity = std::size_t{1} << 20;
constexpr std::size_t kGreatestCapacity = std::size_t{8} << 20;
constexpr std::size_t kLeastCapacity = std::size_t{4} << 10;
// Buffers that are filled faster than this many a second are made larger.
constexpr std::uint64_t kBuffersPerSecond = 16;
// Over how long that is measured.
constexpr double kRateSeconds = 0.5;
constexpr std::size_t kPage = 4096;
// How long what cannot wait for a disk waits for a buffer that somebody else makes.
constexpr std::chrono::milliseconds kMoment{100};

std::size_t rounded(std::size_t bytes) {
  if (bytes > kGreatestCapacity) return (bytes + kPage - 1) / kPage * kPage;
  return std::bit_ceil(std::max(bytes, kLeastCapacity));
}

std::size_t usual_capacity(std::size_t limit) {
  return std::min(kUsualCapacity, rounded(limit / 8));
}

}  // namespace

// Somebody makes the next buffer, now and then without the lock; the others wait for that.
class TailQueue::Opening {
 public:
  explicit Opening(TailQueue& queue) noexcept : queue_(queue) { queue_.opening_since_ = steady_clock::now(); }
  ~Opening() {
    queue_.opening_since_.reset();
    queue_.room_.notify_all();
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

 private:
  TailQueue& queue_;
};

TailQueue::TailQueue(Files files, Limits limits, Pressure on_pressure)
    : files_(std::move(files)),
      limits_{std::max(limits.bytes, 2 * kLeastCapacity), limits.wait_when_full, limits.patience},
      on_pressure_(std::move(on_pressure)),
      capacity_(usual_capacity(limits_.bytes)),
      filled_since_(steady_clock::now()) {
  int error = 0;
  const auto first = create_file(std::max(capacity_, rounded(2 * files_.header.size())), error);
  if (!first) throw_io("create", tail_segment_path(files_.rank_file, next_index_ - 1), error);
  first->touch_ahead(0);
  push_file(first, files_.header.size());
}

// ---- Callers ----

void TailQueue::reserve_slowly(std::size_t bytes, Reservation& reservation) noexcept {
  Lock lock(mutex_);
  try {
    for (;;) {
      if (closed_) {
        reservation.refusal = Refusal::kClosed;
        return;
      }
      reservation.buffer = live_.back().buffer;
      if (reservation.buffer->reserve(bytes, true, reservation.place)) return;  // another has opened it
      on_pressure_();
      if (!has_room()) {
        if (!wait_for_room(lock)) break;
      } else if (opening_since_) {
        if (!wait_for_buffer(lock)) break;
      } else {
        open_next(lock, bytes, true);
      }
    }
  } catch (...) {
    // No memory for a buffer is no room either.
  }
  reservation.refusal = Refusal::kFull;
}

bool TailQueue::wait_for_room(Lock& lock) {
  if (!full_since_) full_since_ = steady_clock::now();
  const auto may_go_on = [&] { return closed_ || has_room(); };
  if (limits_.wait_when_full && !hopeless_) {
    room_.wait_until(lock, *full_since_ + limits_.patience, [&] { return may_go_on() || hopeless_; });
  }
  return may_go_on();
}

// There is room: whether callers are to wait for some is another question.
bool TailQueue::wait_for_buffer(Lock& lock) {
  return room_.wait_until(lock, *opening_since_ + limits_.patience,
                          [&] { return closed_ || !opening_since_; });
}

TailQueue::Reservation TailQueue::reserve_now(std::size_t payload_bytes) {
  const std::size_t bytes = frame_bytes(payload_bytes);
  Lock lock(mutex_);
  Reservation reservation;
  for (;;) {
    reservation.buffer = live_.back().buffer;
    if (closed_) reservation.refusal = Refusal::kClosed;
    if (closed_ || reservation.buffer->reserve(bytes, true, reservation.place)) return reservation;
    if (!opening_since_) {
      open_next(lock, bytes, false);
    } else if (!room_.wait_for(lock, kMoment, [&] { return closed_ || !opening_since_; })) {
      open_memory(capacity_for(bytes), EAGAIN);
    }
  }
}

void TailQueue::define_key(KeyId key, const KeyPath& path) {
  std::string frame;
  append_key_record(frame, key, path);
  Lock lock(mutex_);
  key_frames_.push_back(frame);  // before a place is taken, which has to be filled whatever happens
  TailBuffer& buffer = *live_.back().buffer;
  TailBuffer::Place place;
  const bool fits = buffer.reserve(frame.size(), false, place);
  if (!fits) buffer.close();  // the next buffer begins with the keys
  lock.unlock();
  if (!fits) return;
  std::uint32_t payload_bytes = 0;
  std::memcpy(&payload_bytes, frame.data(), sizeof payload_bytes);
  TailBuffer::announce(place, payload_bytes);
  std::memcpy(place.payload(), frame.data() + kFrameHeadBytes, payload_bytes);
  (void)buffer.publish(place, payload_bytes);
}

void TailQueue::close() noexcept {
  const Lock lock(mutex_);
  closed_ = true;
  live_.back().buffer->close();
  room_.notify_all();
}

std::uint64_t TailQueue::last_sequence() const noexcept {
  const Lock lock(mutex_);
  return last_sequence_locked();
}

std::uint64_t TailQueue::last_sequence_locked() const noexcept {
  return live_.back().buffer->end().sequence;
}

// ---- Buffers ----

// Room for a frame of that size behind the header and the keys.
std::size_t TailQueue::capacity_for(std::size_t bytes) const {
  std::size_t needed = files_.header.size() + bytes;
  for (const auto& frame : key_frames_) needed += frame.size();
  return std::max(capacity_, rounded(needed));
}

// Where there are many keys, half of a spare is for rows.
std::size_t TailQueue::spare_capacity() const {
  std::size_t keys = 0;
  for (const auto& frame : key_frames_) keys += frame.size();
  return capacity_for(keys);
}

// The newest buffer is closed, and one follows that has room for a frame of that size; or another has opened
// one, or the queue is closed. The lock is not held during calls that a hung disk may hold up.
void TailQueue::open_next(Lock& lock, std::size_t bytes, bool may_create) {
  const Opening opening(*this);
  const TailBuffer* const full = live_.back().buffer;
  const std::size_t capacity = capacity_for(bytes);
  int error = error_;
  auto file = take_spare(capacity);
  // While the disk refuses, only the background thread tries.
  if (!file && may_create && error == 0) {
    lock.unlock();
    file = create_file(capacity, error);
    lock.lock();
    if (!file) file = take_spare(capacity);
  }
  if (file && (open_file(lock, std::move(file), error) || error == 0)) return;
  // Never without a reason: a caller would take its record for one that survives.
  if (!closed_ && live_.back().buffer == full) open_memory(capacity, error != 0 ? error : EAGAIN);
}

// A file that does not come to be the newest buffer goes. That is an error of the disk, or, if `error` is 0,
// somebody else's buffer, more keys than have room, or the end of the queue.
bool TailQueue::open_file(Lock& lock, std::shared_ptr<TailFile> file, int& error) {
  error = 0;
  try {
    if (start_file(lock, file, error)) return true;
  } catch (...) {
    error = ENOMEM;
  }
  if (error != 0) error_ = error;
  lock.unlock();
  file->remove();
  file.reset();
  lock.lock();
  return false;
}

// Keys first, those too that come meanwhile: a row that another thread writes may need each of them.
bool TailQueue::start_file(Lock& lock, const std::shared_ptr<TailFile>& file, int& error) {
  const TailBuffer* const full = live_.back().buffer;
  std::size_t offset = files_.header.size();
  for (std::size_t key = first_key_;;) {
    std::string frames;
    for (key = std::max(key, first_key_); key < first_key_ + key_frames_.size(); ++key) {
      frames += key_frames_[key - first_key_];
    }
    if (frames.empty()) break;
    if (offset + frames.size() > file->memory().size()) return false;
    lock.unlock();
    error = file->put(offset, frames);
    lock.lock();
    if (error != 0 || closed_ || live_.back().buffer != full) return false;
    offset += frames.size();
  }
  if (closed_ || live_.back().buffer != full) return false;
  push_file(file, offset);
  return true;
}

void TailQueue::push_file(const std::shared_ptr<TailFile>& file, std::size_t start) {
  TailBuffer& buffer = idle_buffer(file->memory().size());
  const std::uint64_t before = close_newest();
  live_.push_back({&buffer, file, start, before, {start, before}, 0, false});
  live_bytes_ += buffer.capacity();
  buffer.open(file, start, before);
  current_.store(&buffer, std::memory_order_release);
}

void TailQueue::open_memory(std::size_t capacity, int error) {
  TailMemory memory = TailMemory::allocate(capacity);
  if (memory.data() == nullptr) throw std::bad_alloc();
  TailBuffer& buffer = idle_buffer(capacity);
  const std::uint64_t before = close_newest();
  live_.push_back({&buffer, nullptr, 0, before, {0, before}, 0, false});
  live_bytes_ += capacity;
  buffer.open(std::move(memory), error, before);
  current_.store(&buffer, std::memory_order_release);
}

// The last number in it, or before the first buffer.
std::uint64_t TailQueue::close_newest() noexcept {
  if (live_.empty()) return 0;
  filled_bytes_ += live_.back().buffer->capacity();
  return live_.back().buffer->close().sequence;
}

// Callers may still look at a buffer that is no longer in use, so it is kept, with its capacity.
TailBuffer& TailQueue::idle_buffer(std::size_t capacity) {
  const auto found =
      std::ranges::find_if(idle_, [&](const TailBuffer* buffer) { return buffer->capacity() == capacity; });
  if (found != idle_.end()) {
    TailBuffer& buffer = **found;
    idle_.erase(found);
    return buffer;
  }
  idle_.reserve(buffers_.size() + 1);  // so that release() needs no memory
  return *buffers_.emplace_back(std::make_unique<TailBuffer>(capacity));
}

// Its pages are for the background thread to touch.
std::shared_ptr<TailFile> TailQueue::create_file(std::size_t capacity, int& error) noexcept {
  error = 0;
  std::shared_ptr<TailFile> file;
  try {
    do {
      file = TailFile::create(tail_segment_path(files_.rank_file, next_index_++), files_.header, files_.mode,
                              capacity, error);
    } while (error == EEXIST);
  } catch (...) {
    error = ENOMEM;
  }
  error_ = error;
  return file;
}

std::shared_ptr<TailFile> TailQueue::take_spare(std::size_t capacity) {
  const auto found =
      std::ranges::find_if(spares_, [&](const auto& file) { return file->memory().size() >= capacity; });
  if (found == spares_.end()) return nullptr;
  auto file = std::move(*found);
  spares_.erase(found);
  return file;
}

// ---- The background thread: spares ----

// How many spares are to be made: as many as callers fill in a second at the rate seen last. Spares that have
// become too small, or too many, go.
std::size_t TailQueue::missing_spares(std::vector<std::shared_ptr<TailFile>>& superfluous) {
  const auto now = steady_clock::now();
  const double elapsed = std::max(std::chrono::duration<double>(now - filled_since_).count(), kRateSeconds);
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(filled_bytes_) / elapsed);
  const std::size_t usual = usual_capacity(limits_.bytes);
  const std::size_t greatest = std::max(usual, std::min(kGreatestCapacity, limits_.bytes / 8));
  capacity_ = std::clamp(rounded(rate / kBuffersPerSecond), usual, greatest);
  const std::size_t wanted =
      std::max<std::size_t>(1, std::min<std::uint64_t>(rate, limits_.bytes / 2) / capacity_);
  if (now >= filled_since_ + std::chrono::duration<double>(kRateSeconds)) {
    filled_bytes_ = 0;
    filled_since_ = now;
  }
  const std::size_t least = spare_capacity();
  std::vector<std::shared_ptr<TailFile>> kept;
  kept.reserve(spares_.size());
  superfluous.reserve(spares_.size());
  for (auto& file : spares_) {
    const bool stays = file->memory().size() >= least && kept.size() < wanted;
    (stays ? kept : superfluous).push_back(std::move(file));
  }
  spares_ = std::move(kept);
  return wanted - spares_.size();
}

bool TailQueue::prepare() {
  std::size_t missing = 0;
  std::size_t capacity = 0;
  std::vector<std::shared_ptr<TailFile>> superfluous;
  {
    const Lock lock(mutex_);
    if (closed_) return true;
    missing = missing_spares(superfluous);
    capacity = spare_capacity();
  }
  for (const auto& file : superfluous) file->remove();
  for (; missing > 0; --missing) {
    int error = 0;
    auto file = create_file(capacity, error);
    if (!file) return false;
    file->touch_ahead(0);
    const Lock lock(mutex_);
    spares_.push_back(std::move(file));
  }
  Lock lock(mutex_);
  if (closed_ || opening_since_ || !has_room() || live_.back().is_sound()) return true;
  const Opening opening(*this);
  auto file = take_spare(spare_capacity());
  int error = 0;
  return !file || open_file(lock, std::move(file), error) || error == 0;
}

int TailQueue::error() const {
  const Lock lock(mutex_);
  for (const Live& live : live_) {
    if (live.buffer->error() != 0) return live.buffer->error();
  }
  return error_;
}

bool TailQueue::is_broken() const {
  const Lock lock(mutex_);
  return std::ranges::any_of(live_, [&](const Live& live) { return waits_for_database(live); });
}

bool TailQueue::waits_for_database(const Live& live) const noexcept {
  return !live.is_sound() && live.buffer->end().sequence > std::max(watermark_, live.before);
}

bool TailQueue::is_drained() const {
  const Lock lock(mutex_);
  const Live& live = live_.back();
  return cursor_.index + 1 == live_.size() &&
         std::max(cursor_.offset, live.start) >= live.buffer->end().offset;
}

bool TailQueue::is_half_full() const {
  const Lock lock(mutex_);
  // The newest buffer counts by what waits in it: it stays, however large it is.
  const Live& newest = live_.back();
  const bool in_newest = cursor_.index + 1 == live_.size();
  const std::size_t drained = std::max(newest.start, in_newest ? cursor_.offset : 0);
  const std::size_t waiting = live_bytes_ - newest.buffer->capacity() + newest.buffer->end().offset - drained;
  return waiting >= limits_.bytes / 2;
}

// ---- The background thread: records ----

std::uint64_t TailQueue::drain(std::uint64_t most, const Visit& visit) {
  const Cursor before = cursor_;
  try {
    const std::uint64_t last = cursor_.sequence + most;
    while (cursor_.sequence < last && drain_buffer(last, visit)) continue;
  } catch (...) {
    cursor_ = before;
    throw;
  }
  return cursor_.sequence;
}

// False if nothing more is published.
bool TailQueue::drain_buffer(std::uint64_t last, const Visit& visit) {
  Lock lock(mutex_);
  const Live live = live_[cursor_.index];
  const bool newest = cursor_.index + 1 == live_.size();
  lock.unlock();
  // In this order: a buffer that was not the newest is closed.
  const auto end = live.buffer->end();
  cursor_.offset = std::max(cursor_.offset, live.start);
  while (cursor_.offset < end.offset && cursor_.sequence < last) {
    const std::string_view payload = live.buffer->next(cursor_.offset);
    if (payload.empty()) break;  // its caller is at it
    visit(payload);
    cursor_.sequence = std::max(cursor_.sequence, sequence_of_record(payload));
  }
  if (cursor_.offset < end.offset || newest) return false;
  ++cursor_.index;
  cursor_.offset = 0;
  return true;
}

// Removing a file may take as long as the disk likes: not with the lock.
void TailQueue::release(std::uint64_t watermark, std::size_t keys) {
  Lock lock(mutex_);
  watermark_ = watermark;
  for (; first_key_ < keys && !key_frames_.empty(); ++first_key_) key_frames_.pop_front();
  full_since_.reset();
  while (cursor_.index > 0 && live_.front().buffer->end().sequence <= watermark) {
    auto file = release_oldest();
    lock.unlock();
    room_.notify_all();
    if (file) file->remove();
    file.reset();
    lock.lock();
  }
  room_.notify_all();
}

std::shared_ptr<TailFile> TailQueue::release_oldest() noexcept {
  TailBuffer* buffer = live_.front().buffer;
  live_bytes_ -= buffer->capacity();
  live_.pop_front();
  --cursor_.index;
  auto file = buffer->empty();
  idle_.push_back(buffer);
  return file;
}

void TailQueue::set_hopeless(bool hopeless) {
  const Lock lock(mutex_);
  hopeless_ = hopeless;
  room_.notify_all();
}

std::uint64_t TailQueue::sync() {
  Lock lock(mutex_);
  std::uint64_t through = watermark_;
  bool gap = false;
  // Those there are now: of the last, records may come that nobody has looked at before the next is opened.
  const std::size_t buffers = live_.size();
  for (std::size_t i = 0; i < buffers; ++i) {
    Live& live = live_[i];  // only this thread takes buffers away
    const std::size_t end = live.buffer->end().offset;
    lock.unlock();
    const auto published = published_part(live, end);
    const bool is_new = live.file && live.synced < published.offset;
    const int error = is_new ? live.file->sync() : 0;
    if (is_new && error == 0 && i + 1 == buffers) live.file->touch_ahead(published.offset);
    lock.lock();
    live.published = published;
    live.synced = published.offset;
    if (error != 0) {
      live.sync_failed = true;
      error_ = error;
    }
    gap = gap || waits_for_database(live);
    if (!gap) through = std::max(through, published.sequence);
    gap = gap || published.offset < end;
  }
  return through;
}

// From what is known to be published to the first record that its caller is still at.
TailBuffer::End TailQueue::published_part(const Live& live, std::size_t end) {
  TailBuffer::End part = live.published;
  while (part.offset < end) {
    const std::string_view payload = live.buffer->next(part.offset);
    if (payload.empty()) break;
    part.sequence = std::max(part.sequence, sequence_of_record(payload));
  }
  return part;
}

std::uint64_t TailQueue::in_memory_alone() const {
  const Lock lock(mutex_);
  std::uint64_t records = 0;
  for (const Live& live : live_) {
    const std::uint64_t last = live.buffer->end().sequence;
    const std::uint64_t lost_after = std::max({watermark_, live.before, live.buffer->in_memory_from() - 1});
    if (last > lost_after) records += last - lost_after;
  }
  return records;
}

void TailQueue::remove_files(bool all) noexcept {
  Lock lock(mutex_);
  std::vector<std::shared_ptr<TailFile>> spares;
  spares.swap(spares_);
  lock.unlock();
  for (const auto& file : spares) file->remove();
  spares.clear();
  if (!all) return;
  // Nobody is in a buffer any more, and nobody comes: they are closed.
  lock.lock();
  for (Live& live : live_) {
    live.file.reset();
    auto file = live.buffer->empty();
    lock.unlock();
    if (file) file->remove();
    file.reset();
    lock.lock();
  }
}

}  // namespace ranklog::writer
