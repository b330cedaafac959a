#include "tail_segment.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ranklog::writer {

std::shared_ptr<TailSegment> TailSegment::create(const std::filesystem::path& path, std::string_view header,
                                                 int& error) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (!file.is_open()) {
    error = errno;
    return nullptr;
  }
  auto segment = std::make_shared<TailSegment>(path, std::move(file));
  error = segment->append(header);
  if (error == 0) return segment;
  segment->remove();
  return nullptr;
}

int TailSegment::append(std::string_view records) noexcept {
  unsynced_.store(true, std::memory_order_relaxed);
  const int error = write_all(file_.get(), records);
  if (error == 0) {
    size_ += static_cast<off_t>(records.size());
    return 0;
  }
  // A record is whole or is not there. If cutting fails too, readers stop at the torn record, and nothing is
  // appended behind it.
  if (::ftruncate(file_.get(), size_) != 0) return errno;
  return error;
}

int TailSegment::sync() noexcept {
  // Cleared first: what is appended meanwhile asks for the next sync.
  unsynced_.store(false, std::memory_order_relaxed);
  if (::fdatasync(file_.get()) != 0) return errno;
  if (!entry_synced_) {
    if (const int error = sync_folder(path_.parent_path()); error != 0) return error;
    entry_synced_ = true;
  }
  return 0;
}

void TailSegment::remove() noexcept {
  ::unlink(path_.c_str());
}

}  // namespace ranklog::writer
