#include "faulty_disk.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
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

int answer_to_creation(const char* path, int flags) {
  FaultyDisk* const faulty = disk;
  if (faulty == nullptr || (flags & O_CREAT) == 0 || !is_below(path, faulty->folder())) return 0;
  return faulty->answer(faulty->create_error);
}

int answer_to_sync(int fd) {
  FaultyDisk* const faulty = disk_of(fd);
  if (faulty == nullptr) return 0;
  ++faulty->syncs;
  if (const int ms = faulty->sync_ms; ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  return faulty->answer(faulty->sync_error);
}

int answer_to_growth(int fd, off_t size) {
  struct stat facts = {};
  if (disk == nullptr || ::fstat(fd, &facts) != 0 || size <= facts.st_size) return 0;
  return answer(fd, &FaultyDisk::allocate_error);
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
