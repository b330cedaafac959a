#include "write_connection.hpp"

#include <chrono>
#include <thread>

namespace ranklog {
namespace {

namespace fs = std::filesystem;

// With WAL readers are never in the way for more than a moment.
constexpr int kBusyTimeoutMs = 5000;
// With a rollback journal one that reads for long would hold up the thread that also syncs the tail: better
// to fail soon, and to try again later.
constexpr int kRollbackBusyTimeoutMs = 500;
constexpr auto kModeTimeout = std::chrono::milliseconds(5000);
constexpr auto kModeRetry = std::chrono::milliseconds(20);

// Why not; empty if the mode works. SQLite says "wal" before it has tried: a file system without shared
// memory shows only in what follows.
std::string try_wal(Connection& connection) {
  try {
    if (!change_journal_mode(connection, JournalMode::kWal)) {
      return "SQLite stays with " + connection.query_text("PRAGMA journal_mode");
    }
    connection.execute("BEGIN IMMEDIATE; SELECT count(*) FROM meta; COMMIT");
    return {};
  } catch (const SqliteError& error) {
    return error.what();
  }
}

// The file says that it is in WAL mode, and nobody can read it so: in exclusive mode SQLite needs no shared
// memory to change that back.
void leave_unusable_wal(Connection& connection, const fs::path& path, const Durability& durability) {
  connection = Connection();
  {
    Connection alone(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, kBusyTimeoutMs);
    alone.execute("PRAGMA locking_mode = EXCLUSIVE");
    if (!change_journal_mode(alone, JournalMode::kDelete)) {
      throw Error(ErrorCode::kBusy, "'" + path.string() +
                                        "' is in WAL mode, which does not work there, and "
                                        "other programs that read it are in the way");
    }
  }
  connection = connect_for_writing(path, durability);
}

}  // namespace

Connection connect_for_writing(const fs::path& path, const Durability& durability) {
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  Connection connection =
      durability.locks ? Connection(path, kFlags, kBusyTimeoutMs) : Connection(path, kFlags, 0, "unix-none");
  // EXTRA: with a rollback journal a commit is durable only once the journal's removal is
  // synced, too. In WAL mode it is the same as FULL.
  connection.execute("PRAGMA synchronous = EXTRA; PRAGMA wal_autocheckpoint = 2000");
  // Excludes nobody where there are no locks; it spares SQLite looking whether others have changed the file.
  if (!durability.locks) connection.execute("PRAGMA locking_mode = EXCLUSIVE");
  return connection;
}

bool change_journal_mode(Connection& connection, JournalMode mode) {
  const auto deadline = std::chrono::steady_clock::now() + kModeTimeout;
  const std::string word(to_string(mode));
  for (;;) {
    try {
      return connection.query_text("PRAGMA journal_mode = " + word) == word;
    } catch (const SqliteError& error) {
      if (error.code() != ErrorCode::kBusy) throw;
    }
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kModeRetry);
  }
}

Durability settle_journal_mode(Connection& connection, const fs::path& path, const Durability& wanted) {
  Durability settled = wanted;
  if (wanted.journal == JournalMode::kWal) {
    const std::string trouble = wanted.locks ? try_wal(connection) : std::string();
    if (wanted.locks && trouble.empty()) return settled;
    settled.journal = JournalMode::kPersist;
    if (wanted.locks) {
      settled.reason = "WAL mode does not work there: " + trouble;
      leave_unusable_wal(connection, path, settled);
    }
  }
  if (!change_journal_mode(connection, settled.journal)) {
    settled.journal =
        parse_journal_mode(connection.query_text("PRAGMA journal_mode")).value_or(JournalMode::kDelete);
  }
  sqlite3_busy_timeout(connection.get(), kRollbackBusyTimeoutMs);
  return settled;
}

}  // namespace ranklog
