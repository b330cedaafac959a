#include "refusing_vfs.hpp"

#include <sqlite3.h>

#include <chrono>
#include <new>
#include <thread>

namespace ranklog::test {
namespace {

RefusingVfs* wishes = nullptr;
sqlite3_vfs* base = nullptr;
sqlite3_vfs shim;

// SQLite's file object; the real one follows it in the same memory.
struct File {
  sqlite3_file head;
  sqlite3_file* real;
};

sqlite3_file* real(sqlite3_file* file) {
  return reinterpret_cast<File*>(file)->real;
}

int wait_while_hanging() {
  ++wishes->hanging;
  while (wishes->hang) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  --wishes->hanging;
  return SQLITE_OK;
}

int lock(sqlite3_file* file, int level) {
  wait_while_hanging();
  const int refusal = wishes->locks;
  return refusal != SQLITE_OK ? refusal : real(file)->pMethods->xLock(real(file), level);
}

int unlock(sqlite3_file* file, int level) {
  wait_while_hanging();
  return real(file)->pMethods->xUnlock(real(file), level);
}

int check_reserved(sqlite3_file* file, int* result) {
  wait_while_hanging();
  const int refusal = wishes->locks;
  return refusal != SQLITE_OK ? refusal : real(file)->pMethods->xCheckReservedLock(real(file), result);
}

int shm_map(sqlite3_file* file, int region, int bytes, int extend, void volatile** memory) {
  const int refusal = wishes->shared_memory;
  if (refusal != SQLITE_OK) return refusal;
  return real(file)->pMethods->xShmMap(real(file), region, bytes, extend, memory);
}

int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  const int refusal = wishes->shared_locks;
  if (refusal != SQLITE_OK && (flags & SQLITE_SHM_LOCK) != 0) return refusal;
  return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}

// The rest only passes on.
sqlite3_io_methods make_methods() {
  sqlite3_io_methods methods{};
  methods.iVersion = 2;
  methods.xClose = [](sqlite3_file* f) { return real(f)->pMethods->xClose(real(f)); };
  methods.xRead = [](sqlite3_file* f, void* to, int bytes, sqlite3_int64 at) {
    return real(f)->pMethods->xRead(real(f), to, bytes, at);
  };
  methods.xWrite = [](sqlite3_file* f, const void* from, int bytes, sqlite3_int64 at) {
    return real(f)->pMethods->xWrite(real(f), from, bytes, at);
  };
  methods.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) {
    return real(f)->pMethods->xTruncate(real(f), size);
  };
  methods.xSync = [](sqlite3_file* f, int flags) { return real(f)->pMethods->xSync(real(f), flags); };
  methods.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
    return real(f)->pMethods->xFileSize(real(f), size);
  };
  methods.xLock = lock;
  methods.xUnlock = unlock;
  methods.xCheckReservedLock = check_reserved;
  methods.xFileControl = [](sqlite3_file* f, int what, void* value) {
    return real(f)->pMethods->xFileControl(real(f), what, value);
  };
  methods.xSectorSize = [](sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); };
  methods.xDeviceCharacteristics = [](sqlite3_file* f) {
    return real(f)->pMethods->xDeviceCharacteristics(real(f));
  };
  methods.xShmMap = shm_map;
  methods.xShmLock = shm_lock;
  methods.xShmBarrier = [](sqlite3_file* f) { real(f)->pMethods->xShmBarrier(real(f)); };
  methods.xShmUnmap = [](sqlite3_file* f, int remove) {
    return real(f)->pMethods->xShmUnmap(real(f), remove);
  };
  return methods;
}

int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  static const sqlite3_io_methods methods = make_methods();
  auto* opened = new (file) File{};
  opened->real = reinterpret_cast<sqlite3_file*>(opened + 1);
  const int result = base->xOpen(base, name, opened->real, flags, out_flags);
  opened->head.pMethods = opened->real->pMethods != nullptr ? &methods : nullptr;
  return result;
}

}  // namespace

RefusingVfs::RefusingVfs() {
  wishes = this;
  base = sqlite3_vfs_find(nullptr);
  shim = *base;
  shim.pNext = nullptr;
  shim.zName = "refusing";
  shim.szOsFile = static_cast<int>(sizeof(File)) + base->szOsFile;
  shim.xOpen = open;
  // What else there is in a VFS uses its own object: the copy keeps the base's.
  sqlite3_vfs_register(&shim, 1);
}

RefusingVfs::~RefusingVfs() {
  hang = false;
  while (hanging > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  sqlite3_vfs_unregister(&shim);
  sqlite3_vfs_register(base, 1);
  wishes = nullptr;
}

}  // namespace ranklog::test
