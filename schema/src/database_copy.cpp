#include "database_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "file.hpp"
#include "sqlite.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;

// sqlite.org/fileformat2.html: a commit has ended when this is gone or zero.
constexpr std::size_t kJournalHeaderBytes = 28;

fs::path journal_of(fs::path path) {
  return path += "-journal";
}

// What a commit changes beside the pages that it is about.
struct Moment {
  std::string journal;
  std::string header;  // of the database: its first bytes, the change counter among them

  explicit Moment(const fs::path& database) {
    constexpr std::size_t kDatabaseHeaderBytes = 100;
    // The journal first: a commit that begins afterwards is noticed by the second look.
    if (const FileDescriptor file = open_if_exists(journal_of(database)); file.is_open()) {
      journal = read_up_to(file, std::numeric_limits<std::size_t>::max(), journal_of(database));
    }
    header = read_up_to(open_for_reading(database), kDatabaseHeaderBytes, database);
  }
  [[nodiscard]] bool in_commit() const { return journal.size() > kJournalHeaderBytes && journal[0] != '\0'; }
};

// Whether all that was copied in between is of one moment, once the commit in `before` is rolled back. That
// commit may have ended meanwhile, if no other has begun.
bool is_one_moment(const Moment& before, const Moment& after) {
  if (!before.in_commit()) return before.journal == after.journal && before.header == after.header;
  if (after.in_commit()) return before.journal == after.journal;
  const auto records = [](const std::string& journal) {
    return std::string_view(journal).substr(std::min(kJournalHeaderBytes, journal.size()));
  };
  return records(before.journal) == records(after.journal);
}

void write_whole(const fs::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.close();
  if (!out) throw Error(ErrorCode::kIo, "cannot write '" + path.string() + "'");
}

void copy_bytes(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (!error) return;
  throw Error(ErrorCode::kIo,
              "'" + from.string() + "' can only be read from a copy, and cannot be copied to '" +
                  to.string() + "': " + error.message(),
              "set TMPDIR to a folder with enough room");
}

}  // namespace

DatabaseCopy::DatabaseCopy() {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  std::string name = (place / "ranklog-XXXXXX").string();
  if (error || ::mkdtemp(name.data()) == nullptr) {
    throw Error(ErrorCode::kIo, "cannot create a folder for a temporary copy: " + errno_text(errno),
                "set TMPDIR to a folder that can be written");
  }
  folder_ = name;
}

DatabaseCopy::~DatabaseCopy() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::shared_ptr<const DatabaseCopy> DatabaseCopy::make(const fs::path& database) {
  constexpr int kTries = 5;
  const std::shared_ptr<DatabaseCopy> copy(new DatabaseCopy);
  for (int i = 0; i < kTries; ++i) {
    const Moment before(database);
    copy_bytes(database, copy->path());
    if (!is_one_moment(before, Moment(database))) continue;
    if (before.in_commit()) {
      write_whole(journal_of(copy->path()), before.journal);
      Connection connection(copy->path(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, 0);
      (void)connection.query_integer("PRAGMA user_version");  // rolls back
    }
    return copy;
  }
  throw Error(ErrorCode::kBusy, "'" + database.string() + "' changes while it is read, and cannot be locked",
              "try again");
}

}  // namespace ranklog
