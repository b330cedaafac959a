#include "tail_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ranklog::writer {
namespace {

// Beyond a limit on file sizes a write would not only fail: the process gets SIGXFSZ.
bool may_grow_to(std::size_t bytes) noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}

}  // namespace

TailMemory TailMemory::allocate(std::size_t bytes) noexcept {
  TailMemory memory;
  memory.data_ = static_cast<char*>(std::calloc(bytes, 1));
  memory.size_ = memory.data_ != nullptr ? bytes : 0;
  return memory;
}

// Reserved before it is mapped, never sparse: a store to a page without a block would end the process on a
// full disk. fallocate(2) itself, as posix_fallocate falls back to writing where there is no such thing.
TailMemory TailMemory::map(int fd, std::size_t bytes) noexcept {
  TailMemory memory;
  if (!may_grow_to(bytes)) return memory;
  if (::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) {
    void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) {
      memory.data_ = static_cast<char*>(map);
      memory.size_ = bytes;
      memory.mapped_ = true;
      return memory;
    }
  }
  (void)::ftruncate(fd, 0);
  return memory;
}

TailMemory::~TailMemory() {
  if (mapped_) {
    ::munmap(data_, size_);
  } else {
    std::free(data_);
  }
}

void TailMemory::swap(TailMemory& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
}

std::shared_ptr<TailFile> TailFile::create(const std::filesystem::path& path, std::string_view header,
                                           TailMode mode, std::size_t capacity, int& error) {
  Descriptor descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!descriptor.is_open()) {
    error = errno;
    return nullptr;
  }
  auto file = std::make_shared<TailFile>(path, std::move(descriptor));
  error = file->start(header, mode, capacity);
  if (error == 0) return file;
  file->remove();
  return nullptr;
}

int TailFile::start(std::string_view header, TailMode mode, std::size_t capacity) noexcept {
  if (mode == TailMode::kMapped) memory_ = TailMemory::map(file_.get(), capacity);
  if (memory_.data() == nullptr) memory_ = TailMemory::allocate(capacity);
  if (memory_.data() == nullptr) return ENOMEM;
  if (is_mapped()) file_ = Descriptor();
  return put(0, header);
}

int TailFile::put(std::size_t offset, std::string_view bytes) const noexcept {
  std::memcpy(memory_.data() + offset, bytes.data(), bytes.size());
  return is_mapped() ? 0 : write(offset, bytes, {});
}

int TailFile::write(std::size_t offset, std::string_view head, std::string_view payload) const noexcept {
  if (!may_grow_to(offset + head.size() + payload.size())) return EFBIG;
  while (!head.empty() || !payload.empty()) {
    // writev does not change what it is given.
    const iovec parts[] = {{const_cast<char*>(head.data()), head.size()},
                           {const_cast<char*>(payload.data()), payload.size()}};
    const ssize_t written = ::pwritev(file_.get(), parts, 2, static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    const auto done = static_cast<std::size_t>(written);
    const std::size_t of_head = std::min(done, head.size());
    head.remove_prefix(of_head);
    payload.remove_prefix(done - of_head);
    offset += done;
  }
  return 0;
}

int TailFile::sync() noexcept {
  if (const int error = sync_data(); error != 0) return error;
  if (entry_synced_) return 0;
  if (const int error = sync_folder(path_.parent_path()); error != 0) return error;
  entry_synced_ = true;
  return 0;
}

int TailFile::sync_data() const noexcept {
  if (file_.is_open()) return ::fdatasync(file_.get()) == 0 ? 0 : errno;
  // By its name: of a file that somebody has removed, nothing would be found later.
  const Descriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  return file.is_open() && ::fdatasync(file.get()) == 0 ? 0 : errno;
}

// Kernels before 5.14 cannot.
void TailFile::touch_ahead(std::size_t offset) const noexcept {
#ifdef MADV_POPULATE_WRITE
  if (!is_mapped() || offset >= memory_.size()) return;
  constexpr std::size_t kPage = 4096;
  const std::size_t start = offset / kPage * kPage;
  (void)::madvise(memory_.data() + start, memory_.size() - start, MADV_POPULATE_WRITE);
#endif
}

void TailFile::remove() noexcept {
  ::unlink(path_.c_str());
}

}  // namespace ranklog::writer
