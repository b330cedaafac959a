#include "lock_probe.hpp"

#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "sqlite.hpp"

namespace ranklog {
namespace {

// What SQLite's VFS answers where fcntl(2) fails for another reason than somebody else's lock.
bool is_refusal(const SqliteError& error) {
  switch (error.extended_result()) {
    case SQLITE_IOERR_LOCK:
    case SQLITE_IOERR_RDLOCK:
    case SQLITE_IOERR_UNLOCK:
    case SQLITE_IOERR_CHECKRESERVEDLOCK:
      return true;
    default:
      return error.result() == SQLITE_PROTOCOL || error.result() == SQLITE_PERM ||
             error.result() == SQLITE_BUSY;
  }
}

LockAnswer lock_once(const std::filesystem::path& path) {
  constexpr int kBusyTimeoutMs = 5000;  // ENOLCK comes as "busy", too
  try {
    Connection connection(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, kBusyTimeoutMs);
    connection.execute("BEGIN EXCLUSIVE; ROLLBACK");
    return {true, {}};
  } catch (const SqliteError& error) {
    if (!is_refusal(error)) throw;
    return {false, "file locks are refused there"};
  }
}

}  // namespace

LockAnswer probe_locks(const std::filesystem::path& path, std::chrono::milliseconds limit) {
  auto answer = std::make_shared<std::promise<LockAnswer>>();
  auto future = answer->get_future();
  try {
    std::thread([answer, path] {
      try {
        answer->set_value(lock_once(path));
      } catch (...) {
        answer->set_exception(std::current_exception());
      }
    }).detach();
  } catch (const std::system_error&) {
    return lock_once(path);  // no thread to be had: without a limit, then
  }
  if (future.wait_for(limit) == std::future_status::ready) return future.get();
  return {false, "file locks do not answer there within " + std::to_string(limit.count()) + " ms"};
}

}  // namespace ranklog
