#pragma once
// Checkpoints on disk: <experiment>/checkpoints/step-00000400/ with model.pt and manifest.json. A checkpoint
// exists when its manifest does; the manifest comes last and names size and digests of every file, so what
// was cut off by a kill is never taken for one. Nothing here knows what is in the files.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog {

struct CheckpointFile {
  std::string name;  // inside the checkpoint's folder
  FileDigests digests;
};

struct CheckpointManifest {
  std::int64_t step = 0;   // steps that were done
  std::int64_t epoch = 0;  // epochs that were done
  int world_size = 1;
  std::int64_t time_ns = 0;  // Unix
  std::map<std::string, double> metrics;
  std::vector<int> ranks_without_durable_log;  // whose log disk had failed
  std::vector<std::string> aliases;            // of its artifact version
  std::vector<CheckpointFile> files;
};

struct Checkpoint {
  std::filesystem::path folder;
  CheckpointManifest manifest;

  [[nodiscard]] std::filesystem::path file(std::string_view name) const { return folder / name; }
};

// Writes one checkpoint; used by rank 0 alone. What survives: until publish() has returned, earlier
// checkpoints as they are and nothing of this one; afterwards this one too, also after power loss.
// Errors: Error (kIo) naming the file. A checkpoint that is not published is removed again.
class CheckpointWriter {
 public:
  using Sink = std::function<void(const void* data, std::size_t bytes)>;

  // Makes the folder for this step under `checkpoints`; "step-00000400.1" and so on where an attempt before
  // has left one, whose files are never touched.
  CheckpointWriter(const std::filesystem::path& checkpoints, std::int64_t step);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  ~CheckpointWriter();

  // `fill` passes the content piece by piece; digests are computed on the way.
  void write_file(const std::string& name, const std::function<void(const Sink&)>& fill);
  // Adds the files that were written to the manifest, and publishes it.
  Checkpoint publish(CheckpointManifest manifest);

 private:
  std::filesystem::path folder_;
  std::vector<CheckpointFile> files_;
  bool published_ = false;
};

// Reads the manifest and compares every file with it. Throws Error: kNotFound (no manifest), kDamaged naming
// the file and what is wrong with it.
[[nodiscard]] Checkpoint open_checkpoint(const std::filesystem::path& folder);

struct NewestCheckpoint {
  std::optional<Checkpoint> found;
  std::vector<std::string> skipped;            // newer ones that cannot be used, and why
  std::vector<std::filesystem::path> damaged;  // those of them that will never be usable
};
// By step, the latest published of a step first. An absent folder holds none.
[[nodiscard]] NewestCheckpoint find_newest_checkpoint(const std::filesystem::path& checkpoints);

// Removes folders that were never published: what a kill left behind. Only while nobody writes there.
void remove_unpublished_checkpoints(const std::filesystem::path& checkpoints);

// Names of the folders of published checkpoints, whole or not, the newest first.
[[nodiscard]] std::vector<std::string> list_published_checkpoints(const std::filesystem::path& checkpoints);

// From then on "damaged-step-00000400": kept for who wants to look at it, and no checkpoint any more.
void retire_damaged_checkpoint(const std::filesystem::path& folder) noexcept;

// The manifest before the files, so that what a kill leaves behind is no checkpoint. False: it is still
// whole.
bool remove_checkpoint(const std::filesystem::path& folder) noexcept;

// Which checkpoints are surplus when only the newest `keep` are to stay (0: all stay). Counted are those
// known to be whole: published by this launch, the one that it went on from, and older ones once they were
// read. The newest published one is never surplus, nor is one newer than it that an earlier launch left.
class CheckpointRetention {
 public:
  // base: the folder that this launch went on from; empty for none.
  CheckpointRetention(std::filesystem::path checkpoints, int keep, const std::filesystem::path& base);

  void published(const Checkpoint& checkpoint);
  // Folders, oldest first. Reads older checkpoints that it does not know yet, while there is room for them.
  [[nodiscard]] std::vector<std::filesystem::path> surplus();

 private:
  [[nodiscard]] bool is_whole(const std::string& name);

  std::filesystem::path checkpoints_;
  std::size_t keep_;
  std::set<std::string> whole_;  // names of folders
  std::string newest_;
};

}  // namespace ranklog
