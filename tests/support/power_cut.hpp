#pragma once
// A disk that loses power: what it may hold afterwards of the files below one folder, at any moment, without
// anybody being stopped. The program that links this calls it instead of the C library, and so does SQLite
// inside that program.
//
// Durable is what a file held when its last fsync or fdatasync began, under the names that its folder had
// when that was last synced. Of what came later a picture holds any part: each sector of 512 bytes old or
// new (of a mapping, too), the length old, new, or between where the file grew; creations, removals and
// renames done or not, those of one name in their order.

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace ranklog::test {

// One at a time, on a folder that is still empty.
class PowerCut {
 public:
  explicit PowerCut(std::filesystem::path folder);
  ~PowerCut();
  PowerCut(const PowerCut&) = delete;
  PowerCut& operator=(const PowerCut&) = delete;

  // Into a folder that does not exist yet.
  void take_picture(const std::filesystem::path& to, std::mt19937& random);

  // For the calls below, which hold this while they change something.
  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }
  // The name below the folder; empty if it is not there.
  [[nodiscard]] std::string name_of(const std::string& path) const;
  void created(const std::string& name);
  void removing(const std::string& name);
  void removed(const std::string& name);
  void renamed(const std::string& from, const std::string& to);
  void linked(const std::string& from, const std::string& to);
  void syncing(const std::string& name);  // a file
  void synced_folder(const std::string& name);

 private:
  struct File {
    std::string durable;
    std::string at_removal;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;
  struct Change {
    std::string removed, added;  // a rename has both
    std::shared_ptr<File> file;
  };

  [[nodiscard]] Names names_after_cut(std::mt19937& random) const;
  [[nodiscard]] std::string current(const File& file) const;
  [[nodiscard]] static std::string torn(const std::string& before, const std::string& now,
                                        std::mt19937& random);

  const std::string folder_;
  std::mutex mutex_;
  Names now_, durable_;
  std::vector<Change> changes_;  // since the last sync of their folder
};

}  // namespace ranklog::test
