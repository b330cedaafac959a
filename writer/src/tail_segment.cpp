#include "tail_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ranklog::writer {
namespace {

// A chunk's rows of ten scalars fit; a process that logs little costs no more than this for as long as it
// runs.
constexpr std::size_t kReservedBytes = std::size_t{1} << 20;
constexpr std::size_t kTouchedAhead = std::size_t{256} << 10;

// Beyond a limit on file sizes fallocate and write would not only fail: the process gets SIGXFSZ.
bool may_grow_to(std::size_t bytes) noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}

}  // namespace

std::shared_ptr<TailSegment> TailSegment::create(const std::filesystem::path& path, std::string_view header,
                                                 TailMode mode, int& error) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) {
    error = errno;
    return nullptr;
  }
  auto segment = std::make_shared<TailSegment>(path, std::move(file));
  if (mode == TailMode::kMapped) segment->map();
  error = segment->append(header);
  if (error == 0) return segment;
  segment->remove();
  return nullptr;
}

TailSegment::~TailSegment() {
  if (map_ != nullptr) ::munmap(map_, mapped_bytes_);
}

// Reserved before it is mapped, never sparse: a store to a page without a block would end the process on a
// full disk. fallocate(2) itself, as posix_fallocate falls back to writing where there is no such thing.
void TailSegment::map() noexcept {
  if (!may_grow_to(kReservedBytes)) return;
  if (::fallocate(file_.get(), 0, 0, kReservedBytes) != 0) {
    (void)::ftruncate(file_.get(), 0);
    return;
  }
  void* map = ::mmap(nullptr, kReservedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (map == MAP_FAILED) {
    (void)::ftruncate(file_.get(), 0);
    return;
  }
  map_ = static_cast<char*>(map);
  mapped_bytes_ = kReservedBytes;
  touch_ahead();
}

int TailSegment::append(std::string_view records) noexcept {
  unsynced_.store(true, std::memory_order_relaxed);
  const std::size_t size = size_.load(std::memory_order_relaxed);
  const std::size_t in_map = size < mapped_bytes_ ? std::min(mapped_bytes_ - size, records.size()) : 0;
  if (in_map > 0) std::memcpy(map_ + size, records.data(), in_map);
  if (in_map < records.size()) {
    if (const int error = write(records.substr(in_map), size + in_map); error != 0) {
      // A record is whole or is not there.
      if (in_map > 0) std::memset(map_ + size, 0, in_map);
      return error;
    }
  }
  size_.store(size + records.size(), std::memory_order_relaxed);
  return 0;
}

int TailSegment::write(std::string_view records, std::size_t at) noexcept {
  if (!may_grow_to(at + records.size())) return EFBIG;
  const auto start = static_cast<off_t>(at);
  for (off_t position = start; !records.empty();) {
    const ssize_t written = ::pwrite(file_.get(), records.data(), records.size(), position);
    if (written >= 0) {
      records.remove_prefix(static_cast<std::size_t>(written));
      position += written;
    } else if (errno != EINTR) {
      const int error = errno;
      // If cutting fails too, readers stop at the torn record, and nothing is appended behind it.
      return ::ftruncate(file_.get(), start) == 0 ? error : errno;
    }
  }
  return 0;
}

int TailSegment::sync() noexcept {
  // Cleared first: what is appended meanwhile asks for the next sync.
  unsynced_.store(false, std::memory_order_relaxed);
  if (::fdatasync(file_.get()) != 0) return errno;
  touch_ahead();
  if (!entry_synced_) {
    if (const int error = sync_folder(path_.parent_path()); error != 0) return error;
    entry_synced_ = true;
  }
  return 0;
}

// After a sync the first store to each page faults; here it costs nobody's log(). Kernels before 5.14 cannot.
void TailSegment::touch_ahead() const noexcept {
#ifdef MADV_POPULATE_WRITE
  const std::size_t size = size_.load(std::memory_order_relaxed);
  if (size >= mapped_bytes_) return;
  constexpr std::size_t kPage = 4096;
  const std::size_t start = size / kPage * kPage;
  (void)::madvise(map_ + start, std::min(mapped_bytes_ - start, kTouchedAhead), MADV_POPULATE_WRITE);
#endif
}

void TailSegment::remove() noexcept {
  ::unlink(path_.c_str());
}

}  // namespace ranklog::writer
