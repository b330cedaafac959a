#pragma once
// A file system that refuses what SQLite asks of it: registered as SQLite's default VFS for as long as the
// object lives. All else goes to the default VFS of before.

#include <atomic>

struct sqlite3_vfs;

namespace ranklog::test {

// The wishes may change at any time, from any thread. Files that are open when the object dies must be closed
// first.
class RefusingVfs {
 public:
  RefusingVfs();
  ~RefusingVfs();
  RefusingVfs(const RefusingVfs&) = delete;
  RefusingVfs& operator=(const RefusingVfs&) = delete;

  std::atomic<int> shared_memory{0};  // what mapping shared memory gives, if not SQLITE_OK
  std::atomic<int> shared_locks{0};   // what locking it gives
  std::atomic<int> locks{0};          // what locking the database file gives
  std::atomic<bool> hang{false};      // lock calls do not return until this is false again
  std::atomic<int> hanging{0};        // calls that hang at the moment
};

}  // namespace ranklog::test
