#include "faulty_disk.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <thread>

namespace ranklog::test {
namespace {

std::atomic<FaultyDisk*> disk{nullptr};

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/';
}

// The disk, if it is its file.
FaultyDisk* disk_of(int fd) {
  FaultyDisk* const faulty = disk;
  if (faulty == nullptr) return nullptr;
  std::array<char, 64> link{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink(link.data(), path.data(), path.size());
  if (length <= 0) return nullptr;
  const std::string_view name(path.data(), static_cast<std::size_t>(length));
  return name == faulty->folder() || is_below(name, faulty->folder()) ? faulty : nullptr;
}

// 0, or the error that the call has to give.
int answer(int fd, std::atomic<int> FaultyDisk::* error) {
  FaultyDisk* const faulty = disk_of(fd);
  return faulty != nullptr ? faulty->answer(faulty->*error) : 0;
}

void sleep_ms(int ms) {
  if (ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

int answer_to_creation(const char* path, int flags) {
  FaultyDisk* const faulty = disk;
  if (faulty == nullptr || (flags & O_CREAT) == 0 || !is_below(path, faulty->folder())) return 0;
  sleep_ms(faulty->create_ms);
  return faulty->answer(faulty->create_error);
}

int answer_to_sync(int fd) {
  FaultyDisk* const faulty = disk_of(fd);
  if (faulty == nullptr) return 0;
  ++faulty->syncs;
  sleep_ms(faulty->sync_ms);
  return faulty->answer(faulty->sync_error);
}

int answer_to_growth(int fd, off_t size) {
  struct stat facts = {};
  if (disk == nullptr || ::fstat(fd, &facts) != 0 || size <= facts.st_size) return 0;
  return answer(fd, &FaultyDisk::allocate_error);
}

// The first page of a write that crosses one, and then the end, as the kernel does it to a process that is
// killed meanwhile.
void die_in_write(int fd, const iovec* parts, int count, off_t at) {
  constexpr std::size_t kPage = 4096;
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  const std::size_t of_page = kPage - static_cast<std::size_t>(at) % kPage;
  if (bytes.size() <= of_page) return;
  static_cast<void>(!::pwrite(fd, bytes.data(), of_page, at));
  ::raise(SIGKILL);
}

template <class Result>
Result fail(int error) {
  errno = error;
  return static_cast<Result>(-1);
}

}  // namespace

FaultyDisk::FaultyDisk(std::filesystem::path folder) : folder_(std::move(folder)) {
  disk = this;
}

FaultyDisk::~FaultyDisk() {
  disk = nullptr;
}

void FaultyDisk::fail_all(int error) {
  write_error = sync_error = create_error = allocate_error = error;
}

int FaultyDisk::answer(int error) {
  if (error == 0 || passes.fetch_sub(1) > 0) return 0;
  passes = 0;
  ++failed;
  if (once) recover();
  return error;
}

}  // namespace ranklog::test

// ---- What is called instead of the C library ----

using namespace ranklog::test;

extern "C" {

ssize_t write(int fd, const void* data, size_t bytes) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  const int error = answer(fd, &FaultyDisk::write_error);
  return error != 0 ? fail<ssize_t>(error) : real(fd, data, bytes);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  const int error = answer(fd, &FaultyDisk::write_error);
  return error != 0 ? fail<ssize_t>(error) : real(fd, data, bytes, at);
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t at) {
  return pwrite(fd, data, bytes, at);
}

ssize_t pwritev(int fd, const iovec* parts, int count, off_t at) {
  static auto* const real = next<ssize_t(int, const iovec*, int, off_t)>("pwritev");
  if (FaultyDisk* const faulty = disk_of(fd); faulty != nullptr) {
    sleep_ms(faulty->next_write_ms.exchange(0));
    if (faulty->kills_in_write) die_in_write(fd, parts, count, at);
  }
  const int error = answer(fd, &FaultyDisk::write_error);
  return error != 0 ? fail<ssize_t>(error) : real(fd, parts, count, at);
}

ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t at) {
  return pwritev(fd, parts, count, at);
}

int unlink(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("unlink");
  FaultyDisk* const faulty = disk;
  if (faulty != nullptr && is_below(path, faulty->folder())) sleep_ms(faulty->remove_ms);
  return real(path);
}

int fsync(int fd) {
  static auto* const real = next<int(int)>("fsync");
  const int error = answer_to_sync(fd);
  return error != 0 ? fail<int>(error) : real(fd);
}

int fdatasync(int fd) {
  static auto* const real = next<int(int)>("fdatasync");
  const int error = answer_to_sync(fd);
  return error != 0 ? fail<int>(error) : real(fd);
}

int open(const char* path, int flags, ...) {
  static auto* const real = next<int(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  const int error = answer_to_creation(path, flags);
  return error != 0 ? fail<int>(error) : real(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open(path, flags, mode);
}

int link(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("link");
  FaultyDisk* const faulty = disk;
  const int error =
      faulty != nullptr && is_below(to, faulty->folder()) ? faulty->answer(faulty->link_error) : 0;
  return error != 0 ? fail<int>(error) : real(from, to);
}

int fallocate(int fd, int mode, off_t from, off_t bytes) {
  static auto* const real = next<int(int, int, off_t, off_t)>("fallocate");
  const int error = answer(fd, &FaultyDisk::allocate_error);
  return error != 0 ? fail<int>(error) : real(fd, mode, from, bytes);
}

int fallocate64(int fd, int mode, off64_t from, off64_t bytes) {
  return fallocate(fd, mode, from, bytes);
}

int posix_fallocate(int fd, off_t from, off_t bytes) {
  static auto* const real = next<int(int, off_t, off_t)>("posix_fallocate");
  const int error = answer(fd, &FaultyDisk::allocate_error);
  return error != 0 ? error : real(fd, from, bytes);
}

int posix_fallocate64(int fd, off64_t from, off64_t bytes) {
  return posix_fallocate(fd, from, bytes);
}

int ftruncate(int fd, off_t bytes) noexcept {
  static auto* const real = next<int(int, off_t)>("ftruncate");
  const int error = answer_to_growth(fd, bytes);
  return error != 0 ? fail<int>(error) : real(fd, bytes);
}

int ftruncate64(int fd, off64_t bytes) noexcept {
  return ftruncate(fd, bytes);
}

}  // extern "C"
