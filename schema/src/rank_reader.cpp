#include "rank_reader.hpp"

#include <algorithm>
#include <system_error>

namespace ranklog {
namespace {

namespace fs = std::filesystem;

// Long enough for a writer's recovery after a crash, or a commit where there is no WAL.
constexpr int kBusyTimeoutMs = 10'000;

std::uint64_t size_or_zero(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

fs::path wal_of(fs::path path) {
  return path += "-wal";
}

fs::path journal_of(fs::path path) {
  return path += "-journal";
}

// Never by opening the file: closing any descriptor of a database drops the locks that SQLite holds on it in
// this process ("POSIX advisory locks", sqlite.org/howtocorrupt.html).
void check_kind(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw Error(ErrorCode::kNotFound, "there is no file '" + path.string() + "'");
  }
  if (error) throw Error(ErrorCode::kIo, "cannot open '" + path.string() + "': " + error.message());
  if (!fs::is_regular_file(status)) {
    throw Error(ErrorCode::kNotOurs, "'" + path.string() + "' is no rank file: it is not a regular file");
  }
  if (size_or_zero(path) == 0) {
    throw Error(ErrorCode::kDamaged,
                "'" + path.string() + "' is empty: its writer died before it had begun, or is only starting");
  }
}

// file:<path>?immutable=1, with what has a meaning in a URI escaped.
std::string immutable_uri(const fs::path& path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : fs::absolute(path).string()) {
    if (c == '?' || c == '#' || c == '%') {
      const auto byte = static_cast<unsigned char>(c);
      uri += '%';
      uri += kHex[byte >> 4];
      uri += kHex[byte & 15];
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

void check_header(Connection& connection, const fs::path& path) {
  if (connection.query_integer("PRAGMA application_id") != kApplicationId) {
    throw Error(ErrorCode::kNotOurs,
                "'" + path.string() + "' is a SQLite file but no rank file of ranklog's");
  }
  const std::int64_t version = connection.query_integer("PRAGMA user_version");
  if (version == 0) {
    throw Error(ErrorCode::kVersion,
                "'" + path.string() + "' was written by a provisional version of ranklog (format version 0)",
                "read it with that version");
  }
  if (version > kFormatVersion || version < 0) {
    throw Error(ErrorCode::kVersion,
                "'" + path.string() + "' has format version " + std::to_string(version) +
                    ", and this program reads versions up to " + std::to_string(kFormatVersion),
                "use a newer ranklog");
  }
}

Meta read_state(Connection& connection, const fs::path& path) {
  try {
    return read_meta(connection);
  } catch (const SqliteError&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), "'" + path.string() + "' is damaged: " + error.what());
  }
}

// Opens, begins a read transaction and reads `meta`.
Snapshot begin_snapshot(const fs::path& path, const ReadMode& mode) {
  Snapshot snapshot;
  snapshot.mode = mode;
  snapshot.connection = connect(path, mode);
  snapshot.connection.execute("BEGIN");
  check_header(snapshot.connection, path);
  snapshot.meta = read_state(snapshot.connection, path);
  snapshot.damage = snapshot.meta.damage;
  return snapshot;
}

[[noreturn]] void throw_needs_recovery(const fs::path& path, const fs::path& side_file) {
  throw Error(ErrorCode::kIo,
              "'" + path.string() + "' was left by a crash with '" + side_file.filename().string() +
                  "', and reading that needs write permission",
              "copy the folder to a place that you can write to");
}

// What SQLite says where fcntl(2) refuses locks; "busy" after a long wait may be that, too (ENOLCK).
bool is_lock_refusal(const SqliteError& error) {
  switch (error.extended_result()) {
    case SQLITE_IOERR_LOCK:
    case SQLITE_IOERR_RDLOCK:
    case SQLITE_IOERR_UNLOCK:
    case SQLITE_IOERR_CHECKRESERVEDLOCK:
    case SQLITE_BUSY:
      return true;
    default:
      return false;
  }
}

// Changes what `error` shows to be in the way. False if there is nothing to change.
bool find_another_way(const fs::path& path, const SqliteError& error, ReadMode& mode) {
  if (!mode.copy && is_lock_refusal(error) && size_or_zero(wal_of(path)) == 0) {
    mode.copy = DatabaseCopy::make(path);
    return true;
  }
  switch (error.result()) {
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
      if (mode.immutable || mode.copy) return false;
      if (error.extended_result() == SQLITE_READONLY_ROLLBACK || size_or_zero(journal_of(path)) != 0) {
        mode.copy = DatabaseCopy::make(path);
        return true;
      }
      if (size_or_zero(wal_of(path)) != 0) throw_needs_recovery(path, wal_of(path));
      return mode.immutable = true;
    case SQLITE_IOERR:
      // On a full disk SQLite cannot make the index of a WAL. If the WAL is empty, none is needed.
      if (mode.immutable || size_or_zero(wal_of(path)) != 0) return false;
      return mode.immutable = true;
    case SQLITE_CORRUPT:
      if (mode.salvage) return false;
      return mode.salvage = true;
    case SQLITE_NOTADB:
      throw Error(ErrorCode::kNotOurs,
                  "'" + path.string() + "' is no rank file: it is not a SQLite database");
    default:
      return false;
  }
}

Snapshot begin_snapshot(const fs::path& path) {
  constexpr int kTries = 6;  // each way once, and a writer may come between
  ReadMode mode;
  for (int attempt = 1;; ++attempt) {
    try {
      Snapshot snapshot = begin_snapshot(path, mode);
      if (mode.salvage)
        snapshot.damage.push_back({"database", "it is cut short, or its pages contradict each other"});
      return snapshot;
    } catch (const SqliteError& error) {
      if (attempt == kTries || !find_another_way(path, error, mode)) throw;
    }
  }
}

void add_tail(Snapshot& snapshot, const std::vector<TailSegment>& segments) {
  FileInfo& info = snapshot.meta.info;
  snapshot.tail = read_tail(segments, info.identity, snapshot.meta.watermark);
  const Tail& tail = snapshot.tail;
  info.rows += tail.rows;
  info.stored_bytes += tail.bytes;
  if (tail.last_step) info.last_step = std::max(info.last_step.value_or(*tail.last_step), *tail.last_step);
  if (tail.rewind_step) {
    info.rewind_step = std::min(info.rewind_step.value_or(*tail.rewind_step), *tail.rewind_step);
  }
  if (tail.last_time_ns) info.heartbeat_ns = std::max(info.heartbeat_ns, *tail.last_time_ns);
  snapshot.damage.insert(snapshot.damage.end(), tail.damage.begin(), tail.damage.end());
}

}  // namespace

Connection connect(const fs::path& path, const ReadMode& mode) {
  check_kind(path);
  const fs::path place = mode.copy ? mode.copy->path() : path;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | (mode.immutable ? SQLITE_OPEN_URI : 0);
  Connection connection(mode.immutable ? fs::path(immutable_uri(place)) : place, flags, kBusyTimeoutMs);
  // A file from elsewhere may hold views and triggers that pose as our tables.
  sqlite3_db_config(connection.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  connection.execute("PRAGMA cell_size_check = ON");
  // SQLite then reads the pages that are there, instead of refusing all for the length of the file.
  if (mode.salvage) sqlite3_db_config(connection.get(), SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, nullptr);
  return connection;
}

Snapshot take_snapshot(const fs::path& path, const std::vector<std::string>* folder_names) {
  Snapshot snapshot = begin_snapshot(path);
  if (!snapshot.meta.info.end_time_ns) {
    snapshot = Snapshot();  // closes it: what is looked at must be newer than the tail
    const std::vector<TailSegment> segments =
        open_tail_segments(path, folder_names != nullptr ? *folder_names : list_folder(path.parent_path()));
    snapshot = begin_snapshot(path);
    add_tail(snapshot, segments);
  }
  snapshot.meta.info.stored_bytes += size_or_zero(path) + size_or_zero(wal_of(path));
  return snapshot;
}

}  // namespace ranklog
