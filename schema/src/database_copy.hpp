#pragma once
// A copy to read of a database that cannot be read where it lies: a crash left it in the middle of a commit,
// or nothing can be locked there. Whoever reads a log never writes to it, not even to roll a journal back:
// another node may still be writing where locks do not reach.

#include <filesystem>
#include <memory>

namespace ranklog {

class DatabaseCopy {
 public:
  // In the folder for temporary files, as of one moment: without a commit that is only half done. Throws
  // Error (kIo, kBusy if the file keeps changing).
  [[nodiscard]] static std::shared_ptr<const DatabaseCopy> make(const std::filesystem::path& database);
  ~DatabaseCopy();
  DatabaseCopy(const DatabaseCopy&) = delete;
  DatabaseCopy& operator=(const DatabaseCopy&) = delete;

  [[nodiscard]] std::filesystem::path path() const { return folder_ / "copy.db"; }

 private:
  DatabaseCopy();
  std::filesystem::path folder_;
};

}  // namespace ranklog
