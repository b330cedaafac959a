#pragma once
// A disk that fails or is slow, for the files below one folder: the program that links this calls it instead
// of the C library, and so does SQLite inside that program. Stores to a mapping cannot be made to fail.

#include <atomic>
#include <filesystem>
#include <string>

namespace ranklog::test {

// One at a time. Everything passes until an error is set; all may be changed at any time.
class FaultyDisk {
 public:
  explicit FaultyDisk(std::filesystem::path folder);
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  // An errno; 0: none.
  std::atomic<int> write_error{0};     // write, pwrite, pwritev
  std::atomic<int> sync_error{0};      // fsync, fdatasync
  std::atomic<int> create_error{0};    // open with O_CREAT
  std::atomic<int> allocate_error{0};  // fallocate, posix_fallocate; ftruncate that makes a file longer
  std::atomic<int> link_error{0};      // link; not one of fail_all()'s
  std::atomic<int> passes{0};          // so many calls that would fail are let through first
  std::atomic<bool> once{false};       // the first call that fails is the last
  std::atomic<int> sync_ms{0};         // each sync takes this much longer
  std::atomic<int> create_ms{0};       // each creation
  std::atomic<int> remove_ms{0};       // each unlink
  std::atomic<int> next_write_ms{0};   // the next pwritev alone
  // The process is killed in the next pwritev that crosses a page, when the first page is written.
  std::atomic<bool> kills_in_write{false};

  std::atomic<int> failed{0};  // calls, so far
  std::atomic<int> syncs{0};

  void fail_all(int error);  // writes, syncs, creations and allocations
  void recover() { fail_all(0); }

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  // Takes one of `passes`, or counts a failure. For the calls below.
  [[nodiscard]] int answer(int error);

 private:
  const std::string folder_;
};

}  // namespace ranklog::test
