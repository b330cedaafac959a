#include "capture.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "disk.hpp"
#include "process_facts.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/file_copy.hpp"
#include "ranklog/schema/naming.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

void require_file(const fs::path& file) {
  std::error_code error;
  const auto status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) {
    throw Error(ErrorCode::kNotFound, "the file " + file.string() + " does not exist");
  }
  if (status.type() == fs::file_type::none) throw_io("read", file, error.value());
  if (status.type() == fs::file_type::directory) {
    throw Error(ErrorCode::kUsage, "the file " + file.string() + " is a folder", "add its files one by one");
  }
}

void sync_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open() || ::fdatasync(file.get()) != 0) throw_io("sync", path, errno);
}

// A link needs the same file system, and one that has links.
bool try_link(const fs::path& file, const fs::path& target) {
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  return !error && ::link(real.c_str(), target.c_str()) == 0;
}

}  // namespace

std::optional<std::string> path_inside(const fs::path& folder, const fs::path& file) {
  std::error_code error;
  const fs::path whole_folder = fs::weakly_canonical(folder, error);
  const fs::path whole_file = fs::weakly_canonical(file, error);
  const fs::path relative = whole_file.lexically_relative(whole_folder);
  if (error || relative.empty() || *relative.begin() == ".." || relative == ".") return std::nullopt;
  return relative.generic_string();
}

TakenFile::TakenFile(fs::path folder, const fs::path& file, Capture how) : folder_(std::move(folder)) {
  require_file(file);
  if (const auto inside = path_inside(folder_, file)) {
    path_ = folder_ / *inside;
    return;
  }
  const fs::path store = folder_ / kFilesFolderName;
  create_folders(store);
  path_ = store / ("." + random_hex(8) + ".tmp");
  durable_ = how != Capture::kLink || !try_link(file, path_);
  if (durable_) clone_file(file, path_);
  temporary_ = true;
}

TakenFile::TakenFile(TakenFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      path_(std::move(other.path_)),
      durable_(other.durable_),
      temporary_(std::exchange(other.temporary_, false)) {}

TakenFile::~TakenFile() {
  if (temporary_) ::unlink(path_.c_str());
}

StoredFile TakenFile::store() {
  StoredFile stored;
  stored.digests = digest_file(path_);
  if (!durable_) sync_file(path_);
  if (!temporary_) {
    stored.path = path_.lexically_relative(folder_).generic_string();
    return stored;
  }
  const fs::path target = folder_ / kFilesFolderName / stored.digests.sha256;
  stored.path = target.lexically_relative(folder_).generic_string();
  std::error_code error;
  if (fs::exists(target, error)) return stored;
  if (::rename(path_.c_str(), target.c_str()) != 0) throw_io("create", target, errno);
  temporary_ = false;
  if (const int failed = sync_folder(target.parent_path()); failed != 0) throw_io("write", target, failed);
  return stored;
}

}  // namespace ranklog::writer
