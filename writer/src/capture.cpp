#include "capture.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "disk.hpp"
#include "process_facts.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/naming.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyBytes = std::size_t{1} << 20;

void require_file(const fs::path& file) {
  std::error_code error;
  const auto status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) {
    throw Error(ErrorCode::kNotFound, "the artifact's file " + file.string() + " does not exist");
  }
  if (status.type() == fs::file_type::none) throw_io("read", file, error.value());
  if (status.type() == fs::file_type::directory) {
    throw Error(ErrorCode::kUsage, "the artifact's file " + file.string() + " is a folder",
                "add its files one by one");
  }
}

// Removes what a failed copy leaves.
class TemporaryFile {
 public:
  explicit TemporaryFile(fs::path path) : path_(std::move(path)) {
    file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file_.is_open()) throw_io("create", path_, errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(std::string_view bytes) {
    if (const int error = write_all(file_.get(), bytes); error != 0) throw_io("write", path_, error);
  }
  void publish(const fs::path& target) {
    if (::fdatasync(file_.get()) != 0) throw_io("write", path_, errno);
    if (::rename(path_.c_str(), target.c_str()) != 0) throw_io("create", target, errno);
    path_.clear();
    sync_folder(target.parent_path());
  }

 private:
  fs::path path_;
  Descriptor file_;
};

FileDigests copy_and_digest(const fs::path& source, TemporaryFile& copy) {
  const Descriptor file(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw_io("read", source, errno);
  const auto buffer = std::make_unique<char[]>(kCopyBytes);
  DigestStream digests;
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.get(), kCopyBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_io("read", source, errno);
    if (got == 0) return digests.finish();
    const std::string_view bytes(buffer.get(), static_cast<std::size_t>(got));
    digests.update(bytes.data(), bytes.size());
    copy.write(bytes);
  }
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

ArtifactFile capture_file(const fs::path& folder, const fs::path& file, std::string name) {
  require_file(file);
  ArtifactFile captured;
  captured.name = std::move(name);
  FileDigests digests;
  if (const auto inside = path_inside(folder, file)) {
    digests = digest_file(file);
    captured.path = *inside;
  } else {
    const fs::path store = folder / kFilesFolderName;
    create_folders(store);
    TemporaryFile copy(store / ("." + random_hex(8) + ".tmp"));
    digests = copy_and_digest(file, copy);
    captured.path = (fs::path(kFilesFolderName) / digests.sha256).generic_string();
    std::error_code error;
    if (!fs::exists(folder / captured.path, error)) copy.publish(folder / captured.path);
  }
  captured.size = digests.size;
  captured.md5 = digests.md5;
  captured.sha256 = digests.sha256;
  return captured;
}

}  // namespace ranklog::writer
