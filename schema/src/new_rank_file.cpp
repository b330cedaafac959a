#include "new_rank_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "file.hpp"
#include "lock_probe.hpp"
#include "rank_schema.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/owner.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "ranklog/schema/time.hpp"
#include "sqlite.hpp"
#include "write_connection.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;

// A lock server that is merely busy answers sooner; without locks the file is as safe.
constexpr auto kLockPatience = std::chrono::seconds(10);

[[noreturn]] void cannot_create(const fs::path& path, int error) {
  throw Error(ErrorCode::kIo, "cannot create '" + path.string() + "': " + errno_text(error));
}

// " and belongs to pid ..."; empty if that cannot be told.
std::string owner_of(const fs::path& path) {
  try {
    return " and belongs to " + describe_owner(RankFile::open(path).info(), unix_time_ns());
  } catch (const Error&) {
    return {};
  }
}

[[noreturn]] void exists_already(const fs::path& path) {
  throw Error(ErrorCode::kBusy, "'" + path.string() + "' exists already" + owner_of(path) +
                                    ", and is never opened for writing again");
}

FileDescriptor create_exclusively(const fs::path& path) {
  return FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

// Empty, beside the file that is to be, and gone when the object dies. No reader looks for such names.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& beside) {
    const std::string stem = "." + beside.filename().string() + "." + std::to_string(::getpid()) + ".";
    for (std::int64_t number = unix_time_ns();; ++number) {
      path_ = beside.parent_path() / (stem + std::to_string(number) + ".tmp");
      file_ = create_exclusively(path_);
      if (file_.is_open()) return;
      if (errno != EEXIST) cannot_create(beside, errno);
    }
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }
  void fill(std::string_view bytes) const {
    write_all(file_, bytes, path_);
    if (::fsync(file_.get()) != 0) cannot_create(path_, errno);
  }

 private:
  fs::path path_;
  FileDescriptor file_;
};

Durability with_known_locks(const fs::path& path, const Durability& wanted) {
  Durability durability = wanted;
  if (!wanted.locks) return durability;
  const LockAnswer answer = probe_locks(path, kLockPatience);
  if (answer.work) return durability;
  durability.locks = false;
  durability.reason = answer.reason;
  if (durability.journal == JournalMode::kWal) durability.journal = JournalMode::kPersist;
  return durability;
}

struct FreeImage {
  void operator()(unsigned char* bytes) const noexcept { sqlite3_free(bytes); }
};

std::string image_of_new_file(const Identity& identity, std::int64_t start_time_ns,
                              const Durability& durability) {
  Connection memory(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, 0);
  memory.execute(kPageSize);
  Transaction transaction(memory);
  create_tables(memory, identity, start_time_ns);
  record_durability(memory, durability);
  transaction.commit();
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, FreeImage> image(sqlite3_serialize(memory.get(), "main", &size, 0));
  if (!image) throw Error(ErrorCode::kIo, "no memory for a new rank file");
  return {reinterpret_cast<const char*>(image.get()), static_cast<std::size_t>(size)};
}

void give_name(const TemporaryFile& file, const fs::path& path) {
  const int error = publish_exclusively(file.path(), path);
  if (error == EEXIST) exists_already(path);
  if (error != 0) cannot_create(path, error);
}

}  // namespace

Durability make_rank_file(const fs::path& path, const Identity& identity, std::int64_t start_time_ns,
                          const Durability& wanted) {
  const TemporaryFile file(path);
  // While nobody writes it: a lock call that comes back late finds no commit half done.
  Durability durability = with_known_locks(file.path(), wanted);
  file.fill(image_of_new_file(identity, start_time_ns, durability));
  give_name(file, path);
  return durability;
}

}  // namespace ranklog
